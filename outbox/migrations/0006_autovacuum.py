"""Each message is written twice and deleted once: vacuum after thousands of dead rows, not after a fifth of the table."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("outbox", "0005_permissions")]

    operations = [
        migrations.RunSQL(
            """
            ALTER TABLE promotion.outbox SET (
                autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
                autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 20000,
                autovacuum_analyze_scale_factor = 0.02, autovacuum_analyze_threshold = 5000
            )
            """,
            reverse_sql="""
            ALTER TABLE promotion.outbox RESET (
                autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold,
                autovacuum_vacuum_insert_scale_factor, autovacuum_vacuum_insert_threshold,
                autovacuum_analyze_scale_factor, autovacuum_analyze_threshold
            )
            """,
        ),
    ]

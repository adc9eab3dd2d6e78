"""Each expiry leaves a dead entry in the index of what is due, which looks walk over until it is vacuumed away.

So vacuum comes after thousands of them, not after a fifth of the table; and it cleans the indexes even if few pages
hold dead rows, as is the case when neighbours expire together.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("promotion", "0005_purchases_company")]

    operations = [
        migrations.RunSQL(
            """
            ALTER TABLE promotion.promotion_purchases SET (
                autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
                autovacuum_analyze_scale_factor = 0.02, autovacuum_analyze_threshold = 1000,
                vacuum_index_cleanup = on
            )
            """,
            reverse_sql="""
            ALTER TABLE promotion.promotion_purchases RESET (
                autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold,
                autovacuum_analyze_scale_factor, autovacuum_analyze_threshold,
                vacuum_index_cleanup
            )
            """,
        ),
    ]

import django.contrib.postgres.functions
import django.db.models.functions.datetime
import django.db.models.functions.math
import uuid
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        # A role without CREATE on the database can migrate once the schema is there.
        migrations.RunSQL(
            """
            DO $$ BEGIN
                IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'promotion') THEN
                    CREATE SCHEMA promotion;
                END IF;
            END $$
            """,
            reverse_sql=migrations.RunSQL.noop,
        ),
        migrations.CreateModel(
            name='OutboxLane',
            fields=[
                ('lane', models.SmallIntegerField(primary_key=True, serialize=False)),
            ],
            options={
                'db_table': '"promotion"."outbox_lanes"',
            },
        ),
        migrations.CreateModel(
            name='Outbox',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('event_id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, unique=True)),
                ('event_type', models.TextField()),
                ('aggregate_id', models.UUIDField()),
                ('topic', models.TextField()),
                ('key', models.TextField()),
                ('payload', models.TextField(help_text='The exact value of the Kafka message.')),
                ('headers', models.JSONField(db_default=models.Value({}, output_field=models.JSONField()), default=dict)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('attempts', models.IntegerField(db_default=0, default=0)),
                ('next_attempt_at', models.DateTimeField(blank=True, null=True)),
                ('last_error', models.TextField(blank=True, db_default='', default='')),
                ('published_at', models.DateTimeField(blank=True, null=True)),
                ('published_partition', models.IntegerField(blank=True, null=True)),
                ('published_offset', models.BigIntegerField(blank=True, null=True)),
                ('parked_at', models.DateTimeField(blank=True, null=True)),
                ('lane', models.GeneratedField(db_persist=True, expression=django.db.models.functions.math.Mod(models.Func(models.Func(models.Func(models.F('key'), function='md5', output_field=models.TextField()), models.Value('hex', models.TextField()), function='decode', output_field=models.BinaryField()), 0, function='get_byte', output_field=models.IntegerField()), 64), output_field=models.SmallIntegerField())),
            ],
            options={
                'verbose_name': 'outbox message',
                'db_table': '"promotion"."outbox"',
                'indexes': [models.Index(condition=models.Q(('parked_at__isnull', True), ('published_at__isnull', True)), fields=['lane', 'id'], name='outbox_pending'), models.Index(condition=models.Q(('parked_at__isnull', True), ('published_at__isnull', True), ('next_attempt_at__isnull', False)), fields=['key', 'id'], name='outbox_waiting'), models.Index(condition=models.Q(('published_at__isnull', False)), fields=['published_at', 'id'], name='outbox_published'), models.Index(condition=models.Q(('parked_at__isnull', False)), fields=['parked_at', 'id'], name='outbox_parked'), models.Index(fields=['aggregate_id', 'id'], name='outbox_aggregate')],
            },
        ),
    ]

import datetime
import django.contrib.postgres.functions
import django.db.models.deletion
import django.db.models.functions.datetime
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
            name='PromotionPurchase',
            fields=[
                ('id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('tenant_id', models.UUIDField()),
                ('package_kind', models.TextField(choices=[('Boost', 'Boost'), ('Top', 'Top'), ('Highlight', 'Highlight')])),
                ('status', models.TextField(choices=[('Pending', 'Pending'), ('Active', 'Active'), ('Expired', 'Expired'), ('Cancelled', 'Cancelled')], db_default='Pending', default='Pending')),
                ('payment_status', models.TextField(choices=[('NotRequired', 'Not Required'), ('Pending', 'Pending'), ('Paid', 'Paid'), ('Failed', 'Failed'), ('Refunded', 'Refunded')], db_default='Pending', default='Pending')),
                ('starts_at', models.DateTimeField()),
                ('ends_at', models.DateTimeField()),
                ('version', models.IntegerField(db_default=1, default=1)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('updated_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'db_table': '"promotion"."promotion_purchases"',
            },
        ),
        migrations.CreateModel(
            name='PromotionPurchaseTarget',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('target_type', models.TextField(choices=[('CatalogItem', 'Catalog Item'), ('NewsPost', 'News Post')])),
                ('target_id', models.UUIDField()),
            ],
            options={
                'db_table': '"promotion"."promotion_purchase_targets"',
            },
        ),
        migrations.CreateModel(
            name='ExpirationFailure',
            fields=[
                ('purchase', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='expiration_failure', serialize=False, to='promotion.promotionpurchase')),
                ('first_failed_at', models.DateTimeField()),
                ('last_failed_at', models.DateTimeField()),
                ('attempts', models.IntegerField()),
                ('reason', models.TextField(help_text='What went wrong, without values of the row.')),
            ],
            options={
                'verbose_name': 'stuck purchase',
                'db_table': '"promotion"."expiration_failures"',
            },
        ),
        migrations.AddIndex(
            model_name='promotionpurchase',
            index=models.Index(condition=models.Q(('status', 'Active')), fields=['ends_at', 'id'], name='purchases_due'),
        ),
        migrations.AddConstraint(
            model_name='promotionpurchase',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['Pending', 'Active', 'Expired', 'Cancelled'])), name='purchases_status_known'),
        ),
        migrations.AddConstraint(
            model_name='promotionpurchase',
            constraint=models.CheckConstraint(condition=models.Q(('payment_status__in', ['NotRequired', 'Pending', 'Paid', 'Failed', 'Refunded'])), name='purchases_payment_status_known'),
        ),
        migrations.AddConstraint(
            model_name='promotionpurchase',
            constraint=models.CheckConstraint(condition=models.Q(('created_at__range', (datetime.datetime(1, 1, 2, 0, 0, tzinfo=datetime.timezone.utc), datetime.datetime(9999, 12, 30, 0, 0, tzinfo=datetime.timezone.utc))), ('ends_at__range', (datetime.datetime(1, 1, 2, 0, 0, tzinfo=datetime.timezone.utc), datetime.datetime(9999, 12, 30, 0, 0, tzinfo=datetime.timezone.utc))), ('starts_at__range', (datetime.datetime(1, 1, 2, 0, 0, tzinfo=datetime.timezone.utc), datetime.datetime(9999, 12, 30, 0, 0, tzinfo=datetime.timezone.utc))), ('updated_at__range', (datetime.datetime(1, 1, 2, 0, 0, tzinfo=datetime.timezone.utc), datetime.datetime(9999, 12, 30, 0, 0, tzinfo=datetime.timezone.utc)))), name='purchases_instants_finite'),
        ),
        migrations.AddField(
            model_name='promotionpurchasetarget',
            name='purchase',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='targets', to='promotion.promotionpurchase'),
        ),
        migrations.AddIndex(
            model_name='expirationfailure',
            index=models.Index(fields=['last_failed_at', 'purchase'], name='failures_longest_ago'),
        ),
    ]

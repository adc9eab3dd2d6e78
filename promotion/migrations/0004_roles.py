"""Permissions of the operators' acts, and the roles that carry them: Viewer and Operator."""

from django.db import migrations

VIEWED = {
    ("promotion", "promotionpurchase"),
    ("promotion", "promotionpurchasetarget"),
    ("promotion", "expirationfailure"),
    ("promotion", "expirationrun"),
    ("outbox", "outbox"),
}
ACTS = {
    ("promotion", "promotionpurchase", "cancel"): "Can cancel purchase",
    ("promotion", "promotionpurchase", "retry"): "Can retry the expiry of a stuck purchase",
    ("outbox", "outbox", "requeue"): "Can requeue a message",
    ("outbox", "outbox", "skip"): "Can skip a message for good",
}


def create_roles(apps, schema_editor):
    """Django creates permissions after all migrations; those that the roles need are created here already."""
    ContentType = apps.get_model("contenttypes", "ContentType")
    Permission = apps.get_model("auth", "Permission")
    Group = apps.get_model("auth", "Group")

    def permission(app, model, act, name):
        kind, _ = ContentType.objects.get_or_create(app_label=app, model=model)
        found, _ = Permission.objects.get_or_create(
            content_type=kind, codename=f"{act}_{model}", defaults={"name": name}
        )
        return found

    view = [permission(app, model, "view", f"Can view {model}") for app, model in sorted(VIEWED)]
    act = [permission(*key, name) for key, name in ACTS.items()]
    Group.objects.get_or_create(name="Viewer")[0].permissions.add(*view)
    Group.objects.get_or_create(name="Operator")[0].permissions.add(*view, *act)


class Migration(migrations.Migration):
    dependencies = [
        ("promotion", "0003_expiration_runs"),
        ("outbox", "0005_permissions"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='promotionpurchase',
            options={'permissions': [('cancel_promotionpurchase', 'Can cancel purchase'), ('retry_promotionpurchase', 'Can retry the expiry of a stuck purchase')], 'verbose_name': 'purchase'},
        ),
        migrations.AlterModelOptions(
            name='promotionpurchasetarget',
            options={'verbose_name': 'target'},
        ),
        migrations.RunPython(create_roles, reverse_code=migrations.RunPython.noop),
    ]

"""The 64 lanes, and the notification that wakes the relay whoever wrote the message."""

from django.db import migrations

LANES = """
INSERT INTO promotion.outbox_lanes (lane) SELECT generate_series(0, 63)
"""

WAKE_UP = """
CREATE FUNCTION promotion.outbox_wake_relay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('promotion_outbox', '');
    RETURN NULL;
END $$;

CREATE TRIGGER outbox_wake_relay AFTER INSERT ON promotion.outbox
    FOR EACH STATEMENT EXECUTE FUNCTION promotion.outbox_wake_relay();
"""


class Migration(migrations.Migration):
    dependencies = [("outbox", "0001_initial")]

    operations = [
        migrations.RunSQL(LANES, reverse_sql="DELETE FROM promotion.outbox_lanes"),
        migrations.RunSQL(
            WAKE_UP,
            reverse_sql="""
            DROP TRIGGER outbox_wake_relay ON promotion.outbox;
            DROP FUNCTION promotion.outbox_wake_relay();
            """,
        ),
    ]

"""INV-6 in the database: nothing leaves Expired or Cancelled, whoever writes."""

from django.db import migrations

GUARD = """
CREATE FUNCTION promotion.refuse_leaving_terminal_status() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a purchase that is % stays so (INV-6)', OLD.status
        USING ERRCODE = 'check_violation', CONSTRAINT = 'purchases_terminal_is_terminal',
              SCHEMA = 'promotion', TABLE = 'promotion_purchases';
END $$;

CREATE TRIGGER purchases_terminal_is_terminal BEFORE UPDATE ON promotion.promotion_purchases
    FOR EACH ROW WHEN (OLD.status IN ('Expired', 'Cancelled') AND NEW.status IS DISTINCT FROM OLD.status)
    EXECUTE FUNCTION promotion.refuse_leaving_terminal_status();
"""


class Migration(migrations.Migration):
    dependencies = [("promotion", "0001_initial")]

    operations = [
        migrations.RunSQL(
            GUARD,
            reverse_sql="""
            DROP TRIGGER purchases_terminal_is_terminal ON promotion.promotion_purchases;
            DROP FUNCTION promotion.refuse_leaving_terminal_status();
            """,
        ),
    ]

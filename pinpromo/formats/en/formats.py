"""How the pages write instants: sortable, and with their zone, as logs do."""

DATETIME_FORMAT = r"Y-m-d H:i:s \U\T\C"

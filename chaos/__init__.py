"""A fault campaign over the whole system: everything is run for real, broken at random, healed, and then judged.

`python -m chaos --help`. Nothing here is part of the product, and nothing here imports it: the judgement is made by
plain SQL and by consumers with another Kafka library.
"""

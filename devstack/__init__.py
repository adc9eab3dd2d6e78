"""Servers for development and tests, started from packages: PostgreSQL, a small broker, Apache Kafka.

Nothing here is part of the product, and nothing here imports Django.
"""

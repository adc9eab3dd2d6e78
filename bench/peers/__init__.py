"""Other libraries doing the same work on the same tables, each in the way that its documentation recommends.

They run in a virtual environment of their own (`environment`), by `python -m bench.peers.peer NAME ...`.
"""

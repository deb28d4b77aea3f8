"""The Python language worker. `worker.py` is where to begin."""

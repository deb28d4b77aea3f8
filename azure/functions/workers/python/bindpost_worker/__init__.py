"""The Python language worker. Start reading at `worker.py`."""

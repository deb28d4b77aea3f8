"""Starts the worker. It is small because a process that a function spawns imports it again."""

if __name__ == "__main__":
    from bindpost_worker.worker import main

    main()

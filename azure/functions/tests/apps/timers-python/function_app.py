"""Functions with timer triggers, and no others. `../timers-node` and `../timers-handler` have the same functions."""

import json
import os
import time

import azure.functions as func

app = func.FunctionApp()
EVERY_SECOND = "* * * * * *"
NEW_YEAR = "0 0 0 1 1 *"


def note(name, timer=None, **more):
    """Adds a line to the file of a function. Tests read these files."""
    if timer is not None:
        more |= {"pastDue": timer.past_due, "schedule": timer.schedule, "status": timer.schedule_status or None}
    with open(f"{name}.jsonl", "a") as file:
        file.write(json.dumps({"process": os.getpid(), **more}) + "\n")


@app.timer_trigger(arg_name="timer", schedule=EVERY_SECOND)
def Tick(timer: func.TimerRequest) -> None:
    note("Tick", timer)


@app.timer_trigger(arg_name="timer", schedule=NEW_YEAR, run_on_startup=True)
@app.blob_output(arg_name="file", path="timers/{sys.methodname}.txt", connection="AzureWebJobsStorage")
def Startup(timer: func.TimerRequest, file: func.Out[str]) -> None:
    file.set("started")
    note("Startup", timer)


@app.timer_trigger(arg_name="timer", schedule="%SCHEDULE%")
def Configured(timer: func.TimerRequest) -> None:
    note("Configured", timer)


@app.timer_trigger(arg_name="timer", schedule="00:00:01")
def Slow(timer: func.TimerRequest) -> None:
    note("Slow", step="begin")
    time.sleep(1.5)
    note("Slow", step="end")


@app.timer_trigger(arg_name="timer", schedule=EVERY_SECOND)
async def Failing(timer: func.TimerRequest) -> None:
    note("Failing", timer)
    raise RuntimeError("it fails each time")

"""Many runs at once: a grid of methods, worlds, seeds and settings, trained and evaluated into one CSV.

grid.py, ready.py, grid_file.py   what is to be run: by hand, by name, from YAML
jobs.py, data_job.py, run_job.py  one piece of work: what it asks for, how far it is, doing it
worker.py                         a process that does one job
local.py, ray_pool.py             where jobs run: processes of this machine, or a Ray cluster
conduct.py, board.py              what runs next, what is retried, what is shown
results.py, table.py, paper.py    results.csv, the Markdown table made from it, the paper's own numbers

A sweep's folder:

DIR/runs/<name>/        a run each (gcb.runs.run_dir)
DIR/jobs/<name>.yaml    what was asked of it
DIR/logs/<name>.log     what it said
DIR/failed/<name>.txt   why it failed, if it did
DIR/data/<name>/        datasets, unless they are kept elsewhere
DIR/results.csv         every finished run
"""

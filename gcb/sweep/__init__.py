"""Train and evaluate a grid of methods, environments, seeds and settings; collect the results in one CSV.

grid.py, presets.py         grids: from YAML and the command line, by name
jobs.py                     a dataset to collect or a run to train and evaluate
pools.py, ray_pool.py       run jobs in local processes or on a Ray cluster
scheduler.py, dashboard.py  which job runs next, retries, and the display of progress
sweep_dir.py, results.py    the sweep's directory and its results.csv

A sweep's directory:

DIR/runs/<name>/        one run each (gcb.runs.run_dir)
DIR/logs/<name>.log     the output of each job
DIR/failed/<name>.txt   the reason of a failure
DIR/data/<name>/        datasets, unless --data-root is given
DIR/results.csv         the results of all finished runs
"""

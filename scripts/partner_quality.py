"""Print how well a run's metric finds partners, by the length of the walk: python -m scripts.partner_quality RUN

The dataset must have hidden scenes, as those of gcb have: they are used only here, to judge the partners.
"""

import sys

import numpy as np
import torch

import gcb
from gcb.analysis.embed import open_run_data
from gcb.data import GoalSampling, Sampler
from gcb.training.partner_search import PartnerSearch

COLUMNS = (0, 16, 32, 48, 63)
"""Walks to print: of 64 whose lengths are spread on a logarithmic scale."""


def main(run: str) -> None:
    agent = gcb.load(run)
    assert agent.run is not None, "load sets the agent's run"
    data = open_run_data(agent.run)
    sampler = Sampler(data, GoalSampling(1, 0, 0), np.random.default_rng(0), only_successful=True)
    config = agent.method.partners
    if config is None:
        sys.exit(f"{run} was trained without partners.")
    partners = PartnerSearch(agent.method, sampler, agent.run.config, torch.device("cpu"))(agent.run.config.steps)
    scene = dict(zip(data.scene_names, np.asarray(data.episode_scene).T, strict=True))
    own, other = partners.episodes[:, None], partners.table[:, COLUMNS]
    task = np.asarray(data.episode_task)
    opens = scene["target"] > scene["opening"]
    turn = np.degrees(np.abs((scene["cabinet_yaw"][other] - scene["cabinet_yaw"][own] + np.pi) % (2 * np.pi) - np.pi))
    drawer = task[partners.episodes] == list(data.task_names).index("drawer")
    print("hops                 ", np.floor(config.max_hops ** (np.array(COLUMNS) / 63)).astype(int))
    print("same task            ", (task[other] == task[own]).mean(0).round(3))
    print("drawer, same direction", (opens[other] == opens[own])[drawer].mean(0).round(2))
    print("mean difference in yaw", turn.mean(0).round())


if __name__ == "__main__":
    main(sys.argv[1])

"""What a job trains may change: parameters are added, frozen and unfrozen. Each layout is a model of its own on the server.

Its name says after which of the job's steps it begins: "layout-2.at-300", and "critic.layout-2.at-300" for the model
"critic". So a process that is started again learns from the names where the job is.
"""

import re
from dataclasses import dataclass
from typing import Optional, Sequence


@dataclass(frozen=True)
class Layout:
    """One layout of a model.

    Attributes:
      model: the name of the model, as the program has it; "" without one.
      number: counts from 1 on, for each model.
      step: how many steps the layouts before it have made.
      is_of_first_launch: whether those steps are all of this launch of the job.
    """

    model: str
    number: int = 1
    step: int = 0
    is_of_first_launch: bool = True

    @property
    def name(self) -> str:
        """Of the model on the server; "" for the one without a name."""
        if self.number == 1:
            return self.model
        parts = [self.model, f"layout-{self.number}", f"at-{self.step}", "" if self.is_of_first_launch else "again"]
        return ".".join(part for part in parts if part)

    def following(self, step: int, is_of_first_launch: bool) -> "Layout":
        return Layout(self.model, self.number + 1, step, is_of_first_launch)


def latest_layout(model: str, names: Sequence[str]) -> Optional[Layout]:
    """Returns the layout of that model that was begun last, if the job has such names; None if it has the first only."""
    prefix = re.escape(f"{model}.") if model else ""
    found = [re.fullmatch(rf"{prefix}layout-(\d+)\.at-(\d+)(\.again)?", name) for name in names]
    layouts = [Layout(model, int(one[1]), int(one[2]), one[3] is None) for one in found if one]
    return max(layouts, key=lambda layout: (layout.number, layout.step)) if layouts else None

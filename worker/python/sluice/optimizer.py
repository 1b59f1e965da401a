"""A PyTorch optimizer whose parameters and state are on a server."""

import ctypes
import logging
import operator
import threading
import warnings
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, NoReturn, Optional, Set, Tuple, Union

import torch
from torch.nn.utils.clip_grad import clip_grad_norm_, clip_grad_value_

from sluice import _ending, _library, memory
from sluice._library import library
from sluice.embedding import RemoteEmbedding, embeddings_of
from sluice.errors import DivergedError, ModelError, RemoteError, ServerGoneError
from sluice.job import Job, check_not_forked, forked, model_name
from sluice.batch_norms import BatchNorms
from sluice.constants import Constants, named_constants
from sluice.held_model import HeldModel
from sluice.model import FlatModel, Named, named_statistics
from sluice.module_watch import ModuleWatch
from sluice.server_state import state_dict_of

_CHUNK = 1 << 18  # elements: what is sent early is as large as the library's own chunks

DISPOSITIONS = ("accepted", "applied", "stale", "duplicate", "skipped")


@dataclass(frozen=True)
class Round:
    """The report on a step().

    Attributes:
      step: the step of the parameters that the model holds now; the server counts steps.
      disposition: the server's answer to the gradient: "accepted" (it counts), "applied" (it counts, and completed a
        step), "stale" (it was too old, and was dropped), "skipped" (it was not finite) or "duplicate".
      staleness: how many steps the server had made since the parameters of this gradient.
    """

    step: int
    disposition: str
    staleness: int


# PyTorch's optimizers, with the names of their options on the server. Any other option must have the value that is
# given here: the server does not have it.
_OPTIMIZERS: Dict[Any, Tuple[str, Dict[str, Any]]] = {
    torch.optim.SGD: ("sgd", {"lr": "learning_rate", "momentum": "momentum", "dampening": "dampening",
                              "weight_decay": "weight_decay", "nesterov": "nesterov"}),
    torch.optim.Adam: ("adam", {"lr": "learning_rate", "betas": ("beta1", "beta2"), "eps": "eps",
                                "weight_decay": "weight_decay", "amsgrad": "amsgrad"}),
    torch.optim.AdamW: ("adamw", {"lr": "learning_rate", "betas": ("beta1", "beta2"), "eps": "eps",
                                  "weight_decay": "weight_decay", "amsgrad": "amsgrad"}),
    torch.optim.Adagrad: ("adagrad", {"lr": "learning_rate", "lr_decay": "lr_decay", "weight_decay": "weight_decay",
                                      "initial_accumulator_value": "initial_accumulator_value", "eps": "eps"}),
    torch.optim.RMSprop: ("rmsprop", {"lr": "learning_rate", "alpha": "alpha", "eps": "eps",
                                      "weight_decay": "weight_decay", "momentum": "momentum", "centered": "centered"}),
}
# How PyTorch computes, which does not matter here.
_WITHOUT_MEANING = {"params", "foreach", "capturable", "differentiable", "fused"}
# What an optimizer always does: PyTorch 2.7 makes AdamW an Adam with this option.
_IMPLIED = {(torch.optim.AdamW, "decoupled_weight_decay")}
Groups = Dict[Tuple[str, ...], Dict[str, float]]  # options by the names of their parameters
_MOST_SAMPLES = 2**32 - 1
_LEFT_BEHIND: List[Tuple[Any, ...]] = []  # clients that Ctrl-C has interrupted, with the memory that they still write


def _options_of(kind: type, group: Mapping[str, Any]) -> Dict[str, float]:
    """Returns the server's options of an optimizer of PyTorch with these."""
    name, names = _OPTIMIZERS[kind]
    options: Dict[str, float] = {}
    for key, value in group.items():
        if key in _WITHOUT_MEANING or (kind, key) in _IMPLIED:
            continue
        if key in names and isinstance(names[key], tuple):
            options.update(zip(names[key], value))
        elif key in names:
            options[names[key]] = float(value)
        elif value:
            raise ModelError(f"{kind.__name__} has {key}={value}, which the server's {name} does not have")
    return options


def _groups_of(optimizer: torch.optim.Optimizer) -> List[Dict[str, float]]:
    """Returns the server's options of each group. What schedulers and programs note in it is no option."""
    return [_options_of(type(optimizer), {key: group[key] for key in optimizer.defaults if key in group})
            for group in optimizer.param_groups]


class DistributedOptimizer(torch.optim.Optimizer):
    """Takes the place of a PyTorch optimizer: step() pushes the gradients, and takes the server's parameters.

    The training loop stays as it is. The first worker's parameters become the job's first; after that all have the
    job's. The server steps with SGD, Adam, AdamW, Adagrad and RMSprop, with all their options and parameter groups. With
    any other optimizer, in sync, the workers step: the server brings the mean of all gradients, and `optimizer` takes
    the same step with it in each worker.

    Options travel with the gradients: every scheduler of PyTorch works, and every line that changes param_groups. A
    step is made with the options of the worker with the lowest index that contributes to it, so let all workers change
    them in the same way; the log warns of a difference. With local steps, PyTorch's optimizer takes the steps.

    Attributes:
      last: the Round of the last step(); None before the first.
      index, workers: this worker's place among those that were launched, which decides which data it takes; the place
        changes only if the worker has to join again.
      first_step: the job's step when this process joined. A scheduler that is made anew does not know it: in sync, call
        scheduler.step() so many times before training goes on.
      batches_before: those of earlier processes in this worker's place, which a process that was started again skips.
      earlier_launches: for each launch of the job that is over, the batches that each of its workers has taken, by its
        index. DistributedSampler deals what is left.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, job: Job, model: Optional[torch.nn.Module] = None, *,
                 name: Optional[str] = None, where: str = "auto", overlap: bool = False, local_steps: int = 0, elasticity: float = 1.0,
                 moving_rate: float = 1.0, outer_momentum: Optional[float] = None, outer_nesterov: bool = False) -> None:
        """Joins the job, and copies the job's parameters into the model.

        Args:
          optimizer: any but LBFGS and SparseAdam. For a model that has embeddings and no parameters, give it a group
            without parameters, as PyTorch takes no empty list: torch.optim.SGD([{"params": []}], lr=0.1).
          job: what sluice.start() has returned.
          model: the module whose parameters these are. It gives them names, and its running statistics (batch
            normalization) are averaged, too. Without it, parameters are named by their place, and each worker keeps its
            own statistics.
          name: of the model, if the process trains several, each with an optimizer: name="critic". The server holds each
            as if it had a job of its own. None: the model without a name, which one optimizer of a process may train.
          where: who steps. "server": one of the five above, just made, which is not stepped itself; the state is the
            server's, which saves it. "worker": each worker, with `optimizer`; only in sync. The program saves the model,
            as in one process. "auto": the server, unless it does not have the optimizer or one of its options, or the
            optimizer has a state that was loaded; then a line in the log says so.
          overlap: send gradients while backward computes others; backward() once for each step(). It does nothing for a
            model of which more than half is not float32 on the CPU.
          local_steps: take so many steps with `optimizer` itself between two pushes of parameters, which the server
            averages; 0: push gradients. elasticity, moving_rate, outer_momentum (default: 0.3, or 0 with elastic
            averaging) and outer_nesterov are those of `sluice_train --help`.

        Raises:
          ModelError: the optimizer or the model cannot be trained with a server, or another optimizer of this process
            trains a model of that name.
          RemoteError: the server refuses the worker or the name, is too old for names, or cannot be reached.
        """
        # Not Optimizer.__init__(), which would make groups of its own.
        self._inner = optimizer
        steps_here = _steps_here(where, optimizer, job, bool(local_steps))
        self.last: Optional[Round] = None
        self._job = job
        self._local_steps = local_steps
        self._elasticity = elasticity
        self._steps_taken = self._samples_taken = 0
        self._factor = 1.0
        self._overlap: Optional[_Overlap] = None
        name = model_name(name, job._run)
        _check_arguments(job, name, overlap, local_steps)
        self._embeddings = embeddings_of(model)
        parameters = _named_parameters(optimizer, model, bool(self._embeddings))
        statistics = [] if model is None else named_statistics(model)
        self._flat = FlatModel(parameters, statistics, not local_steps, bool(self._embeddings), steps_here)
        self._held = HeldModel(optimizer, self._flat) if steps_here else None
        self._steps = self._has_mean = self._step_to_take = False  # of a step() under way; see _take_step()
        self._clip: Optional[Callable[[List[torch.Tensor]], Any]] = None  # for the mean of the next step()
        self._warned = False  # of values that the program has written
        self._broken = False  # a step of `optimizer` has broken off, so that the model is not the others' any more
        self._constants = Constants([] if model is None else named_constants(model, parameters, statistics))
        self._watch = ModuleWatch(model, self._flat.members, self._constants.frozen)
        self._trained = _trained(optimizer)
        own_steps = steps_here or bool(local_steps)
        self._told = [{}] * len(optimizer.param_groups) if own_steps else _groups_of(optimizer)  # what the server knows
        # A scheduler may have changed the rate already, perhaps to another one in each process that joins.
        self._rates = [group.get("initial_lr", group.get("lr")) for group in optimizer.param_groups]
        for options, rate in zip(self._told, [] if own_steps else self._rates):
            options["learning_rate"] = float(rate)
        groups, self._numbers = ({}, []) if own_steps else self._groups(parameters)
        chosen: Tuple[str, Mapping[str, float]]
        if steps_here:
            chosen = ("mean_gradient", {})
        elif local_steps:
            if outer_momentum is None:
                outer_momentum = 0.3 if local_steps > 1 and elasticity == 1 and moving_rate == 1 else 0
            chosen = ("averaging", {"moving_rate": moving_rate, "local_steps": local_steps,
                                    "outer_momentum": outer_momentum, "outer_nesterov": outer_nesterov})
        else:
            chosen = (_OPTIMIZERS[type(optimizer)][0], self._told[0])
        self._client = _Client(job, job._handle_of(name), self._flat, self._constants, *chosen, groups, self._held)
        self._pushes_rows = False  # the call that Ctrl-C has interrupted, if any, is a push
        if self._embeddings:
            self._add_tables()
        self._norms = BatchNorms(None if local_steps else model, self._flat)
        self._client.keep_running_means(*self._norms.elements())
        self._constants.tell(library.sluice_set_constants, self._client.handle)
        self._client.join()
        job._joined[name] = weakref.ref(self._client)
        if job._run is not None:
            job._optimizers.append(self)
        status = self._client.status()
        self.first_step = int(status.step)
        if self.first_step:
            _note_step(optimizer)
        self._constants.take(status.constants_written)
        if self._held is None or not self._held.is_there:
            self._flat.scatter_values()
        if self._held is not None:
            self._take_mean()  # of the first step that it takes part in, perhaps
            self._take_step()
            self._flat.zero_gradients()
        self._flat.note_values()
        self._norms.note_pull()
        if local_steps and elasticity != 1:
            self._centre = self._flat.values.clone()
        if overlap:
            self._overlap = _Overlap(self._flat, self._client)

    def _add_tables(self) -> None:
        if self._local_steps:
            raise ModelError("local steps average parameters, and no worker holds the rows of an embedding; leave "
                             "local_steps out")
        tables = [embedding.describe(name, _table_optimizer(embedding))
                  for name, embedding in self._embeddings.items()]
        self._client.set_tables(tables)
        for index, embedding in enumerate(self._embeddings.values()):
            embedding.bind(index, self)

    def pull_rows(self, table: int, ids: torch.Tensor, rows: torch.Tensor) -> None:
        """For RemoteEmbedding: writes the rows of `ids`, [rows], int64, ascending, to `rows`, [rows, width], float32."""
        self.wait()
        self._pushes_rows = False
        self._client.pull_rows(table, ids, rows)

    def prefetch_rows(self, table: int, ids: torch.Tensor) -> None:
        """For RemoteEmbedding: begins to pull the rows that the table's next pull_rows() is to write."""
        self.wait()
        self._client.prefetch_rows(table, ids)

    # What PyTorch's own code and that of others reads of an optimizer.
    @property
    def param_groups(self) -> List[Dict[str, Any]]:
        return self._inner.param_groups

    @param_groups.setter
    def param_groups(self, groups: List[Dict[str, Any]]) -> None:
        self._inner.param_groups = groups

    if not TYPE_CHECKING:  # PyTorch declares them as attributes

        @property
        def state(self):
            return self._inner.state

        @property
        def defaults(self):
            return self._inner.defaults

    def __repr__(self) -> str:
        return f"DistributedOptimizer({self._inner!r})"

    def __reduce__(self) -> Tuple[Any, ...]:
        """Pickled, it is PyTorch's optimizer: the state of a schedule may refer to it (OneCycleLR)."""
        return _itself, (self._inner,)

    def __copy__(self) -> NoReturn:
        raise TypeError("a DistributedOptimizer is a connection to a server, and cannot be copied")

    def __deepcopy__(self, _memo: Any) -> NoReturn:
        self.__copy__()

    def add_param_group(self, param_group: Dict[str, Any]) -> NoReturn:
        raise ModelError("parameters were added after DistributedOptimizer was made; add them to the optimizer before")

    def state_dict(self) -> Dict[str, Any]:
        """Returns PyTorch's. If the server steps, its state is brought from there: that of its latest step, which in sync is
        the model's. What it remembers of embeddings' rows is not in it.

        The server cannot give it if there are several, or when this worker has left. Then a warning says so, and the
        result has the groups' options only.
        """
        self.wait()
        if not self._local_steps and self._held is None:
            try:
                return state_dict_of(self._inner, self._flat, *self._client.pull_slots())
            except RemoteError as error:
                if isinstance(error, ServerGoneError):
                    raise
                warnings.warn(f"state_dict() has only the optimizer's options: {error}; a server that was started with "
                              "--checkpoint-dir saves its state", stacklevel=2)
                return {**self._inner.state_dict(), "state": {}}  # not PyTorch's own, which has made no step
        own: Dict[str, Any] = self._inner.state_dict()
        return own

    def load_state_dict(self, state_dict: Any) -> None:
        """Loads one of PyTorch, in all workers, if they step, also with local steps."""
        self.wait()
        if self._held is not None or self._local_steps:
            self._inner.load_state_dict(state_dict)
            return
        raise ModelError("the optimizer's state is on the server; start the server with --checkpoint-dir, and it goes on "
                         "where it was, or load into PyTorch's optimizer before DistributedOptimizer takes it")

    def _groups(self, parameters: Named) -> Tuple[Groups, List[Optional[int]]]:
        """Returns the options of all groups but the first, by the names of their parameters; and the server's number of
        each group. None: none of its parameters is trained."""
        names = {id(parameter): name for name, parameter in parameters}
        groups: Groups = {}
        numbers: List[Optional[int]] = [0]
        for group, options in list(zip(self._inner.param_groups, self._told))[1:]:
            trained = tuple(names[id(parameter)] for parameter in group["params"] if id(parameter) in names)
            if trained:
                groups[trained] = options
            numbers.append(len(groups) if trained else None)
        return groups, numbers

    @property
    def index(self) -> int:
        return int(self._client.status().index)

    @property
    def workers(self) -> int:
        return int(self._client.status().workers)

    @property
    def batches_before(self) -> int:
        return int(self._client.status().pushes_before) * max(1, self._local_steps)

    @property
    def earlier_launches(self) -> List[List[int]]:
        numbers = self._client.earlier_launches()
        launches = []
        while numbers:
            end = 1 + numbers[0]
            launches.append([pushes * max(1, self._local_steps) for pushes in numbers[1:end]])
            numbers = numbers[end:]
        return launches

    def zero_grad(self, set_to_none: bool = True) -> None:  # pylint: disable=unused-argument
        """Sets all gradients to 0. Those that are views of what is pushed stay so; others become None.

        If backward has sent parts of them already, that push is given up.
        """
        self.wait()
        if self._overlap is not None:
            self._overlap.give_up()
        if self._step_to_take:
            raise ModelError("the mean of the gradients was not stepped with, and the other workers step: call step() after "
                             "reduce(), in every worker; `reduced` tells whether it is due")
        self._steps = self._has_mean = False
        self._clip = None
        self._flat.zero_gradients()
        for embedding in self._embeddings.values():
            embedding.forget_gradients()

    def attach(self, kind: str, data: Union[bytes, bytearray, memoryview]) -> None:
        """Attaches bytes to the next push, for the program that serves: at most 8 pieces of 64 KiB together."""
        self.wait()
        content = bytes(data)
        _library.check(library.sluice_attach(self._client.handle, kind.encode(), content, len(content)))

    def wait(self) -> None:
        """Waits for the step() that Ctrl-C has interrupted, if there is one.

        Until then the library may still read the gradients and write the parameters: after KeyboardInterrupt, call this
        before you save or use the model. All other methods call it first.

        Raises: what step() raises.
        """
        round_ = self._client.finish()
        if round_ is not None:
            self._end_push(round_)
        self._take_values()
        if self._broken:
            raise ModelError("a step of the optimizer has broken off, so this worker's model is not the others' any more; end "
                             "this process and start it again: it then takes the model of another worker")
        if self._steps and self._has_mean:
            self._take_step()

    @property
    def reduced(self) -> bool:
        """Whether the gradients are the mean, with which step() is to step: after reduce(), until step()."""
        return self._has_mean

    def reduce(self, *, samples: int = 1, loss: Any = None) -> None:
        """If the workers step: makes each parameter's gradient the mean of all workers'. step() then only steps.

        For what a program does to gradients before it steps. step() calls it if the program has not. The arguments and
        errors are those of step().
        """
        if self._held is None:
            raise ModelError("the mean of the gradients is on the server, which steps; give where=\"worker\"")
        self._client.check_takes_part()
        self.wait()
        self._steps = False
        if not self._has_mean:
            self._push_gradients(_number_of(samples), _loss_of(loss))

    def clip_grad_norm_(self, max_norm: float) -> Optional[torch.Tensor]:
        """Bounds the norm of the mean of all workers' gradients in the next step(). Call it before each, in all workers.

        torch.nn.utils.clip_grad_norm_() would clip this worker's gradient alone, unless reduce() was called before. It also
        returns the norm; here that is known after reduce(), and with local steps, whose gradients are this worker's own.
        Otherwise this returns None.
        """
        if not 0 < max_norm < float("inf"):
            raise ValueError(f"max_norm is {max_norm}, expected a finite number above 0")
        self.wait()
        if not self._local_steps and self._held is None:
            self._client.set_clip_norm(max_norm)
            return None
        norm: Optional[torch.Tensor] = self._clip_mean(lambda parameters: clip_grad_norm_(parameters, max_norm))
        return norm

    def clip_grad_value_(self, clip_value: float) -> None:
        """Bounds each element of the mean, as clip_grad_norm_() does its norm, if the workers step."""
        self.wait()
        if not self._local_steps and self._held is None:
            raise ModelError("the server bounds the norm of the mean, and not its elements; use clip_grad_norm_(), or give "
                             "where=\"worker\"")
        self._clip_mean(lambda parameters: clip_grad_value_(parameters, clip_value))

    def _clip_mean(self, clip: Callable[[List[torch.Tensor]], Any]) -> Any:
        """Clips now if the mean is there, or else in the next step()."""
        if self._local_steps or self._has_mean:
            return clip([parameter for group in self.param_groups for parameter in group["params"]])
        self._clip = clip
        return None

    @torch.no_grad()
    def step(self, closure: Optional[Callable[[], Any]] = None, *, samples: int = 1, loss: Any = None) -> Any:
        """Pushes the gradients, waits until the job's mode lets this worker go on, and takes the new parameters.

        With local steps, takes a step with PyTorch's optimizer, and pushes the parameters when it is time.

        Args:
          closure: computes the loss and its gradients, as in PyTorch.
          samples: the size of the batch, for --reduction=weighted-mean.
          loss: the batch's mean, a number or a tensor of one element. The server shows it, and tells by it whether
            training diverges.

        Returns: the closure's loss, else `loss`. `last` has the report.

        Raises:
          RemoteError: the server refuses the push, or is gone. The model may then hold a mixture of two steps: do not
            use or save it. The next step() drops its gradient, and pulls.
          DivergedError: the server has ended the job because training diverged.
        """
        if closure is not None:
            if self._has_mean:
                raise ModelError("reduce() has made the gradients the mean, to which the closure would add; leave out one")
            with torch.set_grad_enabled(True):  # PyTorch 2.6 gives enable_grad() no types
                loss = closure()
        self._client.check_takes_part()
        self.wait()
        samples, value = _number_of(samples), _loss_of(loss)
        if self._local_steps:
            self._look_up()
            self._take_local_step(samples, value)
        elif self._held is None:
            self._push_gradients(samples, value)
        else:
            if samples != 1 and self._has_mean:
                raise ValueError("the gradients were pushed by reduce(), which takes samples")
            self._steps = True
            if not self._has_mean:
                self._push_gradients(samples, value)
            self._take_step()
        return loss

    def _push_gradients(self, samples: int, loss: Optional[float]) -> None:
        self._look_up()
        if self._overlap is not None:
            self._overlap.check()
        self._tell_options()
        self._flat.gather_gradients()
        if self._overlap is not None:
            self._overlap.end()
        self._push(samples, loss)

    def _take_step(self) -> None:
        """Steps with the mean, if there is one: not if the server has skipped that step, or another model was taken."""
        clip, self._clip = self._clip, None
        if self._step_to_take:
            self._broken = True
            if clip is not None:
                self._clip_mean(clip)
            self._inner.step()
            self._step_to_take = self._broken = False
            assert self._held is not None
            self._held.check()
        self._steps = self._has_mean = False

    def _look_up(self) -> None:
        self._watch.adopt()
        self._flat.check_views()
        self._constants.warn_of_changes()
        if not self._local_steps and self._held is None:
            self._warn_of_writes()
        if _trained(self._inner) != self._trained:
            raise ModelError("the optimizer's parameters, or which of them require a gradient, have changed since "
                             "DistributedOptimizer was made, and the server would not train the new ones; add and unfreeze "
                             "parameters before")

    def _warn_of_writes(self) -> None:
        written = "" if self._warned else self._flat.written()
        if written:
            self._warned = True
            warnings.warn(f"the program has written into {written} since the last step(), and the server, which has the parameters "
                          "and steps, does not know that: this step() replaces the values. Load a model before "
                          "DistributedOptimizer is made; to change parameters between steps, give where=\"worker\"")

    def _tell_options(self) -> None:
        if not self._numbers:
            return  # the workers step
        for place, (number, options) in enumerate(zip(self._numbers, _groups_of(self._inner))):
            if number is None or options == self._told[place]:
                continue
            try:
                self._client.set_options(number, options)
            except RemoteError as error:
                raise ModelError(f"param_groups[{place}] has changed: {error}") from error
            self._told[place] = options

    def _push(self, samples: int, loss: Optional[float]) -> None:
        for index, embedding in enumerate(self._embeddings.values()):
            self._client.set_row_gradients(index, *embedding.gradient())
        value = None if loss is None else ctypes.byref(ctypes.c_float(loss))
        self._client.set_running_means(*self._norms.decays())
        self._pushes_rows = True
        self._end_push(self._client.push(min(samples, _MOST_SAMPLES), value))

    def _end_push(self, round_: Round) -> None:
        """After an error the gradients of rows stay, as the others do."""
        self.last = round_
        _note_step(self._inner)
        self._take_values()
        if self._pushes_rows:
            for embedding in self._embeddings.values():
                embedding.forget_gradients()

    def _take_values(self) -> None:
        """Copies what was pulled, also if Ctrl-C came before or while that was done."""
        if self._client.pulling:
            if self._constants:
                self._constants.take(self._client.status().constants_written)
            if self._held is None:
                self._flat.scatter_values()
                self._flat.note_values()
            else:
                self._take_mean()
            self._norms.note_pull()
            self._client.pulling = False

    def _take_mean(self) -> None:
        """The mean becomes the gradient; or the model of another worker takes the place of this one's."""
        assert self._held is not None
        status = self._client.status()
        if self._held.take() and self.last is not None:
            warnings.warn(f"this worker has missed steps, and has taken the model of another one, of step {status.step}: a "
                          "scheduler of its own has missed them, too")
        self._held.forget()
        self._step_to_take = bool(status.step_to_take)
        if self._step_to_take:
            self._flat.scatter_gradients()
        else:
            self._flat.take_statistics()
            self._flat.zero_gradients()
        self._has_mean = True

    def _take_local_step(self, samples: int, loss: Optional[float]) -> None:
        status = self._client.status()
        if status.complete:
            self._scale_rates(status.learning_rate_factor)
            self._inner.step()
            self._steps_taken += 1
            self._samples_taken += samples
            if self._steps_taken < self._local_steps:
                return
        self._push_parameters(loss)

    def _scale_rates(self, factor: float) -> None:
        """Sets the rates of a local step by the server's schedule. Where it has none, a scheduler of PyTorch may."""
        if factor == 1 and self._factor == 1:
            return
        self._factor = factor
        for group, rate in zip(self._inner.param_groups, self._rates):
            if rate is not None:
                group["lr"] = float(rate) * factor

    def _push_parameters(self, loss: Optional[float]) -> None:
        samples, self._samples_taken, self._steps_taken = max(1, self._samples_taken), 0, 0
        self._flat.gather_values()
        complete = self._client.status().complete
        self._flat.pushed.copy_(self._flat.values)
        if self._elasticity == 1:
            self._push(samples, loss)
            return
        own = self._flat.values - self._elasticity * (self._flat.values - self._centre)
        self._push(samples, loss)
        self._centre.copy_(self._flat.values)
        for member in self._flat.members:
            # Elastic averaging applies to parameters only. Every worker continues with the mean of the statistics.
            if member.is_parameter and complete:
                self._flat.values[member.offset:member.end] = own[member.offset:member.end]
        self._flat.scatter_values()

    def _push_the_rest(self) -> None:
        if self._local_steps and self._steps_taken:
            self._push_parameters(None)

    def leave(self) -> None:
        """Ends this worker's part: the others no longer wait for it. Local steps that are left are pushed first."""
        self.wait()
        if self._local_steps:
            self._look_up()
        self._push_the_rest()
        self._client.leave()

    def await_end(self) -> None:
        """Does the same as leave(), waits until all workers have left, and takes the final parameters. If the workers step,
        the model stays that of this worker's last step.

        Until report(), embeddings have the rows of the last step.
        """
        self.wait()
        self._look_up()
        self._push_the_rest()
        self._client.call(library.sluice_await_end, pulls=self._held is None, leaves=True)
        self._take_values()
        if self._held is not None:
            self._flat.zero_gradients()  # the library has written the last mean

    def report(self, **results: float) -> None:
        """Sends numbers for the server's closing table: report(test_accuracy=0.91). Once, after await_end()."""
        self.wait()
        names = (ctypes.c_char_p * max(1, len(results)))(*[name.replace("_", " ").encode() for name in results])
        values = (ctypes.c_double * max(1, len(results)))(*results.values())
        self._client.call(library.sluice_report, names, values, len(results))


def _steps_here(where: str, optimizer: torch.optim.Optimizer, job: Job, has_local_steps: bool) -> bool:
    """Returns whether the workers make every step, each with its optimizer."""
    if where not in ("auto", "server", "worker"):
        raise ValueError(f"where is {where!r}, expected \"auto\", \"server\" or \"worker\"")
    kind = type(optimizer).__name__
    if isinstance(optimizer, (torch.optim.LBFGS, torch.optim.SparseAdam)):
        why = "computes the gradient several times in a step" if isinstance(optimizer, torch.optim.LBFGS) else \
            "takes sparse gradients only, and their mean is dense"
        raise ModelError(f"{kind} {why}, so it cannot be distributed; use another optimizer")
    if has_local_steps:
        if where == "server":
            raise ValueError("with local_steps the workers step; leave where out")
        return False
    why_not = _why_not_on_server(optimizer)
    if where == "server" and why_not:
        raise ModelError(f"{why_not}; give where=\"worker\", or another optimizer")
    if where == "auto" and why_not and job.speaks:
        logging.getLogger("sluice").warning("the workers step, each with %s, on the mean of all gradients: %s", kind, why_not)
    return where == "worker" or bool(why_not)


def _why_not_on_server(optimizer: torch.optim.Optimizer) -> str:
    """Returns why the server cannot step with it; empty if it can."""
    if type(optimizer) not in _OPTIMIZERS:
        names = ", ".join(known.__name__ for known in _OPTIMIZERS)
        return f"{type(optimizer).__name__} has no counterpart on the server, which has {names}"
    if _has_stepped(optimizer):
        return "the optimizer has taken steps or was loaded, and the server would not have its state"
    try:
        _groups_of(optimizer)
    except ModelError as error:
        return str(error)
    return ""


def _check_arguments(job: Job, name: str, overlap: bool, local_steps: int) -> None:
    if job.is_server:
        raise ValueError("this process serves; call job.serve() instead of training")
    joined = job._joined.get(name, lambda: None)()
    if joined is not None and not joined.left:
        if name:
            raise ModelError(f"this process trains a model with the name \"{name}\" already; give each model a name of its own "
                             "(name=…), or call leave() of the other optimizer before")
        raise ModelError("this process trains a model without a name already, and a job has one of them; give the second model "
                         "a name, such as name=\"critic\", or one optimizer all parameters, in groups if they differ, or "
                         "call leave() of the other optimizer before")
    if local_steps and overlap:
        raise ValueError("local steps push no gradients, so overlap has none to send early; use one of them")
    if local_steps < 0:
        raise ValueError(f"local_steps is {local_steps}, expected 0 or more")


def _table_optimizer(embedding: RemoteEmbedding) -> Tuple[Optional[str], Dict[str, float]]:
    """Returns the server's name and options of a table's own optimizer; without one, None."""
    if embedding.table_optimizer is None:
        return None, {}
    kind, options = embedding.table_optimizer
    if kind not in _OPTIMIZERS:
        names = ", ".join(known.__name__ for known in _OPTIMIZERS)
        raise ModelError(f"the optimizer of an embedding is {kind!r}, expected one of PyTorch's {names}")
    return _OPTIMIZERS[kind][0], _options_of(kind, options)


def _loss_of(loss: Any) -> Optional[float]:
    """Returns a loss as a number, or None."""
    if not isinstance(loss, torch.Tensor):
        return None if loss is None else float(loss)
    if loss.numel() != 1:
        raise ValueError(f"loss has {loss.numel()} elements, expected a number or a tensor of one element; give the batch's "
                         "mean, loss.mean()")
    return float(loss.item())


def _number_of(samples: Any) -> int:
    try:
        number = operator.index(samples)
    except TypeError:
        number = 0
    if not 0 < number <= _MOST_SAMPLES:
        raise ValueError(f"samples is {samples!r}, expected a whole number from 1 to {_MOST_SAMPLES}: the size of the batch")
    return number


def _has_stepped(optimizer: torch.optim.Optimizer) -> bool:
    return any(float(state.get("step", 0)) > 0 or state.get("momentum_buffer") is not None
               for state in optimizer.state.values())


def _itself(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    return optimizer


def _note_step(optimizer: Any) -> None:
    """A scheduler that was made of this optimizer, and not of the wrapper, warns if it does not seem to be stepped."""
    if hasattr(optimizer, "_step_count"):
        optimizer._step_count += 1  # pylint: disable=protected-access
    optimizer._opt_called = True  # pylint: disable=protected-access


def _trained(optimizer: torch.optim.Optimizer) -> List[List[Tuple[int, bool]]]:
    """Returns what may not change: which parameters each group has, and whether they are trained."""
    return [[(id(parameter), parameter.requires_grad) for parameter in group["params"]]
            for group in optimizer.param_groups]


def _named_parameters(optimizer: torch.optim.Optimizer, model: Optional[torch.nn.Module], has_tables: bool) -> Named:
    """Returns (name, parameter) of all parameters that the optimizer trains: none, if the model has tables only."""
    trained = [parameter for group in optimizer.param_groups for parameter in group["params"] if parameter.requires_grad]
    if not trained and not has_tables:
        raise ModelError("no parameter of the optimizer requires a gradient, and `model` has no RemoteEmbedding; give an "
                         "optimizer of the parameters that are to be trained, or a model with embeddings")
    if model is None:
        return [(str(place), parameter) for place, parameter in enumerate(trained)]
    # A tensor with several names (tied parameters) is trained under its first.
    named = list(model.named_parameters())
    known = {id(parameter) for _, parameter in named}
    for place, parameter in enumerate(trained):
        if id(parameter) not in known:
            raise ModelError(f"the optimizer's parameter {place}, of shape {list(parameter.shape)}, is none of `model`'s; "
                             "give the model that the optimizer trains")
    wanted = {id(parameter) for parameter in trained}
    return [(name, parameter) for name, parameter in named if id(parameter) in wanted]


class _Standing:
    """What a finalizer must know of a client; it must not hold the client itself."""

    takes_part = False  # it has joined, and has not left
    thread = threading.get_ident()  # that has called it last


class _Client:
    """The library's client: it calls, and waits so that Python can handle signals."""

    def __init__(self, job: Job, of_model: ctypes.c_void_p, flat: FlatModel, constants: Constants, name: str, options: Mapping[str, float],
                 groups: Groups, held: Optional[HeldModel]) -> None:
        self.left = False
        self._standing = _Standing()
        self._flat = flat  # its memory must outlive the client
        self._job = job
        array, count = _library.options_of(options)
        group_array = (_library.Group * max(1, len(groups)))()
        for group, (names, own) in zip(group_array, groups.items()):
            group.parameters = (ctypes.c_char_p * max(1, len(names)))(*[word.encode() for word in names])
            group.parameter_count = len(names)
            group.options, group.option_count = _library.options_of(own)
        optimizer = _library.Optimizer(name.encode(), array, count, group_array, len(groups))
        model = flat.description()
        handle = ctypes.c_void_p()
        _library.check(library.sluice_client_create(of_model, ctypes.byref(model), ctypes.byref(optimizer),
                                                    flat.address, flat.buffer, ctypes.byref(handle)))
        self.handle = handle
        self.pulling = False  # a call has written the parameters, and they were not taken since
        self._pulls = self._leaves = False  # what the call under way does
        self._call = _library.Call(handle, library.sluice_wait, _library.Round())
        # Of the functions that the library calls.
        self._errors: List[BaseException] = [] if held is None else held.errors
        restore = _restore_of(flat, self._errors)
        if flat.has_one_buffer:
            _library.check(library.sluice_set_restore(handle, restore, None))
        if held is not None:
            _library.check(library.sluice_set_model(handle, held.save, held.load, None))
        self._waits = self._call.under_way
        self._rows: List[torch.Tensor] = []  # that a pull writes, and its ids
        self._finalizer = weakref.finalize(self, _close, handle, self._waits, self._standing, flat, job, self._rows, restore,
                                           constants, held)

    def check_takes_part(self) -> None:
        if self.left:
            raise RemoteError("step() was called after leave(), when this worker no longer takes part", 9)

    def status(self) -> _library.Status:
        status: _library.Status = library.sluice_client_status(self.handle)
        return status

    def earlier_launches(self) -> List[int]:
        numbers = (ctypes.c_uint64 * 0)()
        count = library.sluice_earlier_launches(self.handle, numbers, 0)
        numbers = (ctypes.c_uint64 * count)()
        library.sluice_earlier_launches(self.handle, numbers, count)
        return list(numbers)

    def call(self, function: Callable[..., int], *arguments: Any, pulls: bool = False, leaves: bool = False) -> Round:
        """Calls a function that begins something, and waits for it. Returns the Round.

        `pulls` says that it writes parameters: `pulling` is set then, unless the call fails; whoever takes them clears it.
        `leaves` says that this worker has left when it has ended. Ctrl-C may come anywhere: finish() then does the rest.
        """
        check_not_forked()
        self.finish()
        self._pulls, self._leaves = pulls, leaves
        self._standing.thread = threading.get_ident()
        _ending.thread_runs(self._standing.thread)
        self._call.begin(function, *arguments)
        return self._end()

    def finish(self) -> Optional[Round]:
        """Waits for a call that Ctrl-C has interrupted, and returns its Round; None if there is none."""
        if not self._call.has_begun():
            return None
        check_not_forked()
        return self._end()

    def _end(self) -> Round:
        """Nothing is called after `_waits` is cleared: Ctrl-C would come there, and what has ended would be lost."""
        code = self._call.wait()
        if code != _library.OK:
            error = _error(code)
            cause = self._errors[0] if self._errors else None
            self._errors[:] = []
            self._waits[0] = False
            raise error from cause
        result = self._call.result
        round_ = Round(result.step, DISPOSITIONS[result.disposition], result.staleness)
        self.pulling = self.pulling or self._pulls
        if self._leaves:
            self.left, self._standing.takes_part = True, False
        self._waits[0] = False
        return round_

    def join(self) -> None:
        self.call(library.sluice_join)
        self._standing.takes_part = True

    def push(self, samples: int, loss: Any) -> Round:
        return self.call(library.sluice_push, samples, loss, pulls=True)

    def keep_running_means(self, means: Any, count: int) -> None:
        _library.check(library.sluice_keep_running_means(self.handle, means, count))

    def set_running_means(self, means: Any, count: int) -> None:
        _library.check(library.sluice_set_running_means(self.handle, means, count))

    def set_options(self, group: int, options: Mapping[str, float]) -> None:
        _library.check(library.sluice_set_options(self.handle, group, *_library.options_of(options)))

    def set_clip_norm(self, norm: float) -> None:
        _library.check(library.sluice_set_clip_norm(self.handle, norm))

    def pull_slots(self) -> Tuple[Dict[str, torch.Tensor], int]:
        """Returns what the server's optimizer remembers, by names, and how many steps it has made. The vectors are valid
        until the next push."""
        self.call(library.sluice_pull_slots)
        steps = ctypes.c_uint64()
        slots = (_library.Slot * library.sluice_slots(self.handle, None, 0, ctypes.byref(steps)))()
        library.sluice_slots(self.handle, slots, len(slots), None)
        return {slot.name.decode(): memory.view_of(slot.values, self._flat.size) for slot in slots}, steps.value

    def set_tables(self, tables: List[_library.Table]) -> None:
        _library.check(library.sluice_set_tables(self.handle, (_library.Table * len(tables))(*tables), len(tables)))

    def pull_rows(self, table: int, ids: torch.Tensor, rows: torch.Tensor) -> None:
        self._rows[:] = [ids, rows]
        self.call(library.sluice_pull_rows, table, _ids(ids), ids.numel(),
                  memory.address_of(rows, torch.float32, ids.numel(), *rows.shape[1:]))
        self._rows.clear()

    def prefetch_rows(self, table: int, ids: torch.Tensor) -> None:
        check_not_forked()
        _library.check(library.sluice_prefetch_rows(self.handle, table, _ids(ids), ids.numel()))

    def set_row_gradients(self, table: int, ids: torch.Tensor, gradients: torch.Tensor) -> None:
        address = memory.address_of(gradients, torch.float32, ids.numel(), *gradients.shape[1:])
        _library.check(library.sluice_set_row_gradients(self.handle, table, _ids(ids), ids.numel(), address))

    def leave(self) -> None:
        self.call(library.sluice_leave, leaves=True)


def _ids(ids: torch.Tensor) -> Any:
    return memory.address_of(ids, torch.int64, ids.numel())


def _restore_of(flat: FlatModel, errors: List[BaseException]) -> Any:
    """Returns the function for sluice_set_restore(), which adds to `errors` what goes wrong.

    A thread of the library calls it, and gets the interpreter's lock, since waiting gives that up.
    """
    def restore(_context: Optional[int], _parameters: Optional[int]) -> int:
        try:
            flat.gather_values()
        except BaseException as error:  # pylint: disable=broad-except
            errors.append(error)  # the library's thread cannot raise it
            return 1
        return 0

    return _library.Restore(restore)


def _error(code: int) -> RemoteError:
    error = _library.last_error(code)
    if error.reason == "DIVERGED":
        return DivergedError(str(error), code, error.reason)
    return error


def _close(handle: ctypes.c_void_p, waits: List[bool], standing: _Standing, *kept: Any) -> None:
    """`kept` are what the library uses until then: the vectors and the job.

    A client that takes part and is dropped may be that of a program which is done, or of one that handles an exception
    and ends. So it leaves only if the process goes on. If that ends, the library tells the server how.
    """
    if forked():
        return  # it has none of the library's threads
    if waits[0]:
        # A call that Ctrl-C has interrupted may wait for others for long, and writes the vectors when it ends. The
        # process ends without it, and the server notices.
        _LEFT_BEHIND.append(kept)
        return
    failure = _ending.exception_of(standing.thread)
    if not standing.takes_part or failure:
        library.sluice_set_failure(handle, failure.encode("utf-8", "replace"))
        library.sluice_client_free(handle)
        return
    _LEFT_BEHIND.append(kept)
    if not _ending.process_ends():
        _ending.unless_process_ends(lambda: _leave(handle, kept))


def _leave(handle: ctypes.c_void_p, kept: Tuple[Any, ...]) -> None:
    if library.sluice_leave(handle) == _library.OK:
        while library.sluice_wait(handle, _library.FOREVER, None) == _library.PENDING:
            pass
    library.sluice_client_free(handle)
    _LEFT_BEHIND[:] = [others for others in _LEFT_BEHIND if others is not kept]


class _Overlap:
    """Sends the gradients of layers that backward has left, while it computes those of others."""

    def __init__(self, flat: FlatModel, client: _Client) -> None:
        self._flat = flat
        self._client = client
        self._ready: Set[int] = set()
        self._twice: Optional[str] = None  # what backward() has reached a second time
        self._sent = False
        self._pending: Optional[Tuple[int, int]] = None  # neighbouring elements [begin, end) that are ready and not sent
        self._accumulators: List[Any] = []  # hooks live as long as these
        for place, member in enumerate(flat.members):
            if member.is_parameter and member.gradient_is_view:
                # PyTorch 1.13 has no register_post_accumulate_grad_hook(): the node that accumulates has the hook.
                node: Any = member.tensor.expand_as(member.tensor).grad_fn
                accumulator = node.next_functions[0][0]
                accumulator.register_hook(lambda *_, place=place: self._note(place))
                self._accumulators.append(accumulator)

    def _note(self, place: int) -> None:
        member = self._flat.members[place]
        if not member.has_gradient():
            return  # step() copies it
        if place in self._ready:
            self._twice = member.name
            return
        self._ready.add(place)
        if self._pending is not None and self._pending[0] == member.end:
            self._pending = (member.offset, self._pending[1])
        else:
            self._flush()
            self._pending = (member.offset, member.end)
        if self._pending[1] - self._pending[0] >= _CHUNK:
            self._flush()

    def _flush(self) -> None:
        """Sends what is pending if it is worth a message; step() sends the rest."""
        if self._pending is not None and self._pending[1] - self._pending[0] >= _CHUNK // 4:
            begin, end = self._pending
            _library.check(library.sluice_send_early(self._client.handle, begin, end - begin))
            self._sent = True
        self._pending = None

    def check(self) -> None:
        """Raises what backward() had to. A hook must not: PyTorch then keeps the graph until the process's end, which
        hangs, because Python ends before."""
        if self._twice is not None:
            raise ModelError(f"backward() has reached {self._twice} twice since the last step(); with overlap, call "
                             "backward() once for each step(), or zero_grad() between them")

    def end(self) -> None:
        """Called before a push: what comes after it belongs to the next."""
        self._twice = None
        self._ready.clear()
        self._pending = None
        self._sent = False

    def give_up(self) -> None:
        if self._sent:
            _library.check(library.sluice_give_up_early(self._client.handle))
        self.end()



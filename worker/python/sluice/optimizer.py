"""A PyTorch optimizer whose parameters and state are on a server."""

import contextlib
import ctypes
import logging
import threading
import time
import warnings
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, NoReturn, Optional, Set, Tuple, Union

import torch
from torch.nn.utils.clip_grad import clip_grad_norm_, clip_grad_value_

from sluice import _library
from sluice._library import library
from sluice.batch_norms import BatchNorms
from sluice.client import MOST_SAMPLES, AwaitedClient, Client, Round, loss_of, number_of
from sluice.constants import Constants, named_constants
from sluice.embedding import embeddings_of
from sluice.errors import DivergedError, ModelError, RemoteError, ServerGoneError
from sluice.held_model import HeldModel
from sluice.job import Job, brings_optimizer, model_name
from sluice.layouts import Layout, latest_layout
from sluice.model import FlatModel, Named, named_statistics
from sluice.module_watch import ModuleWatch
from sluice.overlap import Overlap
from sluice.server_optimizers import OPTIMIZERS, Groups, ServerOptimizer, groups_of, name_of, table_optimizer, why_not_on_server
from sluice.server_state import state_dict_of

_PATIENCE = 20.0  # seconds in which the other workers, too, should have begun a layout
_SECONDS_BETWEEN_LOOKS = 5.0  # for a later layout
# What is made anew for each layout of the model.
_OF_LAYOUT = ("_layout", "_flat", "_pushed", "_held", "_constants", "_watch", "_norms", "_trained", "_told", "_numbers", "_chosen", "_client",
              "_steps", "_has_mean", "_step_to_take")


@dataclass(frozen=True)
class _Place:
    """This worker's place in the data, which does not change with the layout."""

    index: int
    workers: int
    batches_before: int
    earlier_launches: List[List[int]]


class DistributedOptimizer(torch.optim.Optimizer):
    """Takes the place of a PyTorch optimizer: step() pushes the gradients, and takes the server's parameters.

    The training loop stays as it is. The first worker's parameters become the job's first; after that all have the
    job's. The server steps with SGD, Adam, AdamW, Adagrad and RMSprop, with all their options and parameter groups, and
    with what sluice.start(server_optimizer=…) brings there. With any other optimizer, in sync, the workers step: the
    server brings the mean of all gradients, and `optimizer` takes the same step with it in each worker.

    Options travel with the gradients: every scheduler of PyTorch works, and every line that changes param_groups. A
    step is made with the options of the worker with the lowest index that contributes to it, so let all workers change
    them in the same way; the log warns of a difference, and with --options-must-agree it is an error. With local steps,
    PyTorch's optimizer takes the steps.

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
          where: who steps. "server": one of those above, just made, which is not stepped itself; the state is the
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
        self._of_program = _is_of_program(where, optimizer)
        steps_here = _steps_here(where, optimizer, job, bool(local_steps), self._of_program)
        self.last: Optional[Round] = None
        self._job = job
        self._model = model
        self._where = where
        self._local_steps = local_steps
        self._elasticity = elasticity
        self._steps_taken = self._samples_taken = 0
        self._factor = 1.0
        self._overlaps = overlap
        self._overlap: Optional[Overlap] = None
        name = model_name(name, job._run)
        _check_arguments(job, name, overlap, local_steps)
        self._embeddings = embeddings_of(model)
        self._steps = self._has_mean = self._step_to_take = False  # of a step() under way; see _take_step()
        self._clip: Optional[Callable[[List[torch.Tensor]], Any]] = None  # for the mean of the next step()
        self._warned = False  # of values that the program has written
        self._broken = False  # a step of `optimizer` has broken off, so that the model is not the others' any more
        self._loaded = False  # a state was loaded, with which the workers are to step
        self._comes_back = False  # away() is over, and this worker takes part with its next gradient
        self._is_returning = False  # it does so now
        self._drops = False  # the gradients that are there were computed before away(), on other parameters
        self._attached: List[Tuple[str, bytes]] = []  # to the next push
        self._place: Optional[_Place] = None  # once the layout has changed
        self._earlier: Optional[Client] = None  # that of the layout before, until the first step of this one
        self._averaging: Dict[str, float] = {}
        if local_steps:
            if outer_momentum is None:
                outer_momentum = 0.3 if local_steps > 1 and elasticity == 1 and moving_rate == 1 else 0
            self._averaging = {"moving_rate": moving_rate, "local_steps": local_steps, "outer_momentum": outer_momentum,
                               "outer_nesterov": outer_nesterov}
        self._pushes_rows = False  # the call that Ctrl-C has interrupted, if any, is a push
        self._layout = Layout(name)
        self._trained: List[List[Tuple[int, bool]]] = []
        self._client: Client
        later = None if _why_one_layout(where, local_steps, bool(self._embeddings)) else _later_layout(job, name)
        self._take_layout(steps_here)
        # A scheduler may have changed the rate already, perhaps to another one in each process that joins.
        self._rates = [group.get("initial_lr", group.get("lr")) for group in optimizer.param_groups]
        if later is None:
            self._connect()
        else:
            self._layout = later
            self._client = AwaitedClient(job, later)  # until _change_layout()
            self.first_step = later.step
            _note_step(optimizer)
        if job._run is not None:
            of_run: Callable[[], Any] = weakref.ref(self)
            if local_steps:
                of_run = lambda: self  # at the end of the run it pushes those that are left
            job._optimizers.append(of_run)
        if local_steps and elasticity != 1:
            self._centre = self._flat.values.clone()

    def _take_layout(self, steps_here: bool) -> None:
        """Describes the model and the optimizer as they are now, for the server."""
        gone = {one for group in self._trained for one, _ in group}  # of the layout before, if there was one
        parameters = _named_parameters(self._inner, self._model, bool(self._embeddings), gone)
        statistics = [] if self._model is None else named_statistics(self._model)
        self._flat = FlatModel(parameters, statistics, not self._local_steps, bool(self._embeddings), steps_here)
        self._pushed = {id(member.tensor) for member in self._flat.members if member.is_parameter}
        self._held = HeldModel(self._inner, self._flat) if steps_here else None
        self._constants = Constants([] if self._model is None else named_constants(self._model, parameters, statistics))
        self._watch = ModuleWatch(self._model, self._flat.members, self._constants.frozen)
        self._norms = BatchNorms(None if self._local_steps else self._model, self._flat)
        self._trained = _trained(self._inner)
        self._told: List[Dict[str, float]] = []  # what the server knows of each group
        self._numbers: List[Optional[int]] = []
        self._chosen: ServerOptimizer = ("mean_gradient", {}, {})
        if self._local_steps:
            self._chosen = ("averaging", self._averaging, {})
        elif not steps_here:
            self._told = groups_of(self._inner, self._of_program)
            for options, group in zip(self._told, self._inner.param_groups):
                options["learning_rate"] = float(group.get("initial_lr", group["lr"]))
            groups, self._numbers = self._groups(parameters)
            self._chosen = (name_of(self._inner, self._of_program), self._told[0], groups)

    def _connect(self, takes_model: bool = False) -> None:
        """Joins the layout's model, and takes the job's parameters; or, with `takes_model`, the model of another worker."""
        self._next_look = time.monotonic() + _SECONDS_BETWEEN_LOOKS
        client = Client(self._job, self._job._handle_of(self._layout.name), self._flat, self._constants, self._chosen, self._held,
                        self._layout.step)
        self._client = client
        if self._embeddings:
            self._add_tables()
        client.keep_running_means(*self._norms.elements())
        self._constants.tell(library.sluice_set_constants, client.handle)
        if takes_model:
            _library.check(library.sluice_take_model(client.handle))
        client.join(lambda: None if self._held is None else self._check_latest())
        for name in (self._layout.model, self._layout.name):
            self._job._joined[name] = weakref.ref(client)
        status = client.status()
        self.first_step = int(status.step)
        if self.first_step:
            _note_step(self._inner)
        self._constants.take(status.constants_written)
        if self._held is None or not self._held.is_there:
            self._flat.scatter_values()
        if self._held is not None:
            self._take_mean()  # of the first step that it takes part in, perhaps
            self._take_step()
            self._flat.zero_gradients()
        self._flat.note_values()
        self._norms.note_pull()
        if self._overlaps:
            self._overlap = Overlap(self._flat, client)

    def _add_tables(self) -> None:
        if self._local_steps:
            raise ModelError("local steps average parameters, and no worker holds the rows of an embedding; leave "
                             "local_steps out")
        tables = [embedding.describe(name, table_optimizer(embedding))
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

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """Adds parameters, in all workers before the same step. See the README's "Parameters that are added or frozen"."""
        why = _why_one_layout(self._where, self._local_steps, bool(self._embeddings))
        if why:
            raise ModelError(f"parameters were added after DistributedOptimizer was made, and {why}")
        self.wait()
        self._inner.add_param_group(param_group)

    def state_dict(self) -> Dict[str, Any]:
        """Returns PyTorch's. If the server steps, its state is brought from there: that of its latest step, which in sync is
        the model's. What it remembers of embeddings' rows is not in it.

        The server cannot give it when this worker has left; nor can several servers, not in sync, if their steps take less
        time than the call. Then a warning says so, and the result has the groups' options only.
        """
        self.wait()
        if not self._local_steps and self._held is None and not self._loaded:
            try:
                return state_dict_of(self._inner, self._flat, self._of_program, *self._client.pull_slots())
            except RemoteError as error:
                if isinstance(error, ServerGoneError):
                    raise
                warnings.warn(f"state_dict() has only the optimizer's options: {error}; a server that was started with "
                              "--checkpoint-dir saves its state", stacklevel=2)
                return {**self._inner.state_dict(), "state": {}}  # not PyTorch's own, which has made no step
        own: Dict[str, Any] = self._inner.state_dict()
        return own

    def load_state_dict(self, state_dict: Any) -> None:
        """Loads one of PyTorch, in all workers. If the server has stepped, the workers step from the next step() on, with the
        parameters that the model then has, as with where="worker"; so where="server" refuses it."""
        self.wait()
        steps_here = self._held is not None or bool(self._local_steps)
        why = "" if steps_here else _why_one_layout(self._where, self._local_steps, bool(self._embeddings))
        if why:
            raise ModelError("the optimizer's state is on the server; start the server with --checkpoint-dir, and it goes on "
                             "where it was, or load into PyTorch's optimizer before DistributedOptimizer takes it; leave where "
                             "out, and the workers step with what is loaded later")
        self._inner.load_state_dict(state_dict)
        self._loaded = self._loaded or not steps_here

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
        return int(self._client.status().index) if self._place is None else self._place.index

    @property
    def workers(self) -> int:
        return int(self._client.status().workers) if self._place is None else self._place.workers

    @property
    def batches_before(self) -> int:
        if self._place is not None:
            return self._place.batches_before
        return self._layout.step + int(self._client.status().pushes_before) * max(1, self._local_steps)

    @property
    def earlier_launches(self) -> List[List[int]]:
        if self._place is not None:
            return self._place.earlier_launches
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
        self._come_back()
        if self._step_to_take:
            raise ModelError("the mean of the gradients was not stepped with, and the other workers step: call step() after "
                             "reduce(), in every worker; `reduced` tells whether it is due")
        self._steps = self._has_mean = self._drops = False
        self._clip = None
        self._flat.zero_gradients()
        for group in self._inner.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and id(parameter) not in self._pushed:  # it is frozen, or was added since
                    parameter.grad = None
        for embedding in self._embeddings.values():
            embedding.forget_gradients()

    def attach(self, kind: str, data: Union[bytes, bytearray, memoryview]) -> None:
        """Attaches bytes to the next push, for the program that serves: at most 8 pieces of 64 KiB together."""
        self.wait()
        self._change_layout()
        content = bytes(data)
        self._client.attach(kind, content)
        self._attached.append((kind, content))

    def wait(self) -> None:
        """Waits for the step() that Ctrl-C has interrupted, if there is one.

        Until then the library may still read the gradients and write the parameters: after KeyboardInterrupt, call this
        before you save or use the model. All other methods call it first.

        Raises: what step() raises.
        """
        round_ = self._client.finish()
        if not self._comes_back:  # else _come_back() goes on
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
        self.wait()
        is_late = self._come_back()
        self._client.check_takes_part()
        is_late = self._change_layout() or is_late
        if self._held is None:
            raise ModelError("the mean of the gradients is on the server, which steps; give where=\"worker\"")
        if is_late:
            return
        self._steps = False
        if not self._has_mean:
            self._push_gradients(number_of(samples), loss_of(loss))

    def clip_grad_norm_(self, max_norm: float) -> Optional[torch.Tensor]:
        """Bounds the norm of the mean of all workers' gradients in the next step(). Call it before each, in all workers.

        torch.nn.utils.clip_grad_norm_() would clip this worker's gradient alone, unless reduce() was called before. It also
        returns the norm; here that is known after reduce(), and with local steps, whose gradients are this worker's own.
        Otherwise this returns None.
        """
        if not 0 < max_norm < float("inf"):
            raise ValueError(f"max_norm is {max_norm}, expected a finite number above 0")
        self.wait()
        self._change_layout()
        if not self._local_steps and self._held is None:
            self._client.set_clip_norm(max_norm)
            self._clip = lambda parameters: clip_grad_norm_(parameters, max_norm)  # if another layout begins before the push
            return None
        norm: Optional[torch.Tensor] = self._clip_mean(lambda parameters: clip_grad_norm_(parameters, max_norm))
        return norm

    def clip_grad_value_(self, clip_value: float) -> None:
        """Bounds each element of the mean, as clip_grad_norm_() does its norm, if the workers step."""
        self.wait()
        self._change_layout()
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
        self.wait()
        is_late = self._come_back()
        self._client.check_takes_part()
        samples, value = number_of(samples), loss_of(loss)
        is_late, self._drops = is_late or self._drops, False
        if self._change_layout() or is_late:
            return loss  # others have made this step
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
        with self._telling_that_it_waits():
            self._push(samples, loss)
        if self._held is None:
            self._clip = None  # the server has it
        self._leave_earlier()

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

    # ---- Layouts ----

    def _changes(self) -> str:
        """Returns what the program has done since this layout was begun; "" if nothing that begins another."""
        now = _trained(self._inner)
        if now == self._trained:
            return "a state was loaded" if self._loaded else ""
        before = {parameter: trains for group in self._trained for parameter, trains in group}
        after = {parameter: trains for group in now for parameter, trains in group}
        both = before.keys() & after.keys()
        done = [(len(after) > len(both), "added"), (len(before) > len(both), "removed"),
                (any(before[one] and not after[one] for one in both), "frozen"),
                (any(after[one] and not before[one] for one in both), "unfrozen")]
        return f"parameters were {' and '.join(word for is_done, word in done if is_done) or 'put into other groups'}"

    def _change_layout(self) -> bool:
        """If the program has changed what is trained, or has loaded a state, begins the next layout, in which the workers
        step. Returns whether it has brought the model of other workers, who were there before: then gradients are lost."""
        if self._has_mean:
            return False  # the step that reduce() has begun belongs to this layout
        changes = self._changes()
        if not changes:
            if isinstance(self._client, AwaitedClient):
                raise ModelError(f"{self._client.behind()}. This process was started again: it has to make the same changes as "
                                 "the others have made, such as add_param_group() and requires_grad_(), before its first step(). "
                                 "A loop over all epochs with a DistributedSampler comes to them by itself")
            return False
        why = _why_one_layout(self._where, self._local_steps, bool(self._embeddings))
        if why:
            raise _changed(changes, why)
        try:
            return self._begin_layout(changes)
        except (DivergedError, ServerGoneError):
            raise
        except RemoteError as error:
            raise _changed(changes, f"the job cannot go on with them: {error}. This needs sync, one server, and the same changes "
                                    "in all workers before the same step") from error

    def _check_latest(self) -> None:
        """While it waits for the model of another worker: raises if the others do not train this layout any more."""
        if time.monotonic() < self._next_look:
            return
        later = latest_layout(self._layout.model, self._job._model_names())
        if later is not None and later.number > self._layout.number:
            raise ModelError(f"{AwaitedClient(self._job, later).behind()}. This process has waited for the model of another worker "
                             "before they did; start it again")
        self._next_look = time.monotonic() + _SECONDS_BETWEEN_LOOKS

    def catch_up(self) -> bool:
        """For DistributedSampler: begins a layout that is due before the first step of this process, which may have been
        started again. Returns whether it did."""
        if self.last is not None or not self._changes():
            return False
        self._change_layout()
        return True

    def _begin_layout(self, changes: str) -> bool:
        before = {name: getattr(self, name) for name in _OF_LAYOUT}
        place = self._place or _Place(self.index, self.workers, self.batches_before, self.earlier_launches)
        awaited = isinstance(self._client, AwaitedClient)
        if self._overlap is not None:
            self._overlap.close()
            self._overlap = None
        gradients = [(parameter, parameter.grad.clone()) for group in self._inner.param_groups for parameter in group["params"]
                     if parameter.grad is not None]
        first_step, clip = self.first_step, self._clip
        held = {id(parameter) for group in self._inner.param_groups for parameter in group["params"]}
        for removed in [one for one in self._inner.state if isinstance(one, torch.Tensor) and id(one) not in held]:
            del self._inner.state[removed]  # PyTorch's state_dict() would not find it
        try:
            if self._held is None and not self._loaded and not awaited:
                self._bring_state()
            if not awaited:
                self._layout = self._layout.following(int(self._client.status().step), not place.earlier_launches)
            self._take_layout(True)
            exact = [(member, member.tensor.detach().clone()) for member in self._flat.members
                     if not member.is_parameter or member.tensor.dtype == torch.float64]
            buffers = [(buffer, buffer.detach().clone()) for buffer in self._constants.buffers]
            self._connect(takes_model=awaited)
        except BaseException:
            self.__dict__.update(before)
            self._flat.bind_gradients()
            self._set_gradients(gradients)
            if self._overlaps and not awaited:
                self._overlap = Overlap(self._flat, self._client)
            raise
        assert self._held is not None
        self._clip = clip
        for kind, content in self._attached:
            self._client.attach(kind, content)
        is_late = self._held.has_taken
        if is_late:
            self._set_gradients([])
        else:
            self.first_step = first_step
            self._set_gradients(gradients)
            _keep_exact(exact)
            with torch.no_grad():
                for buffer, value in buffers:
                    buffer.copy_(value)  # each worker's own, which the join has made the first worker's
            self._norms.go_on_from(before["_norms"])
        self._loaded = False
        self._job._layouts.add(self._layout.name)
        if not awaited:
            # Before the job's first step, the layout's sessions tell the place of this process, and of earlier ones.
            self._place = None if self._layout.step == 0 else place
            self._note_layout(before, changes)
        return is_late

    def _note_layout(self, before: Dict[str, Any], changes: str) -> None:
        """This process has gone on from the layout before."""
        earlier, self._earlier = self._earlier, before["_client"]
        if earlier is not None:  # no step was made between two layouts
            earlier.leave()
        if before["_held"] is None and self._job.speaks:
            logging.getLogger("sluice").warning("from step %d on the workers step, each with %s, on the mean of all gradients: %s after "
                                                "DistributedOptimizer was made", self._layout.step, type(self._inner).__name__, changes)

    def _bring_state(self) -> None:
        """Gives PyTorch's optimizer what the server's remembers."""
        whole = state_dict_of(self._inner, self._flat, self._of_program, *self._client.pull_slots())
        for numbered, group in zip(whole["param_groups"], self._inner.param_groups):
            for index, parameter in zip(numbered["params"], group["params"]):
                if index in whole["state"]:
                    state = whole["state"][index]
                    on_device = group.get("fused") or group.get("capturable")
                    if on_device and isinstance(state.get("step"), torch.Tensor):
                        state["step"] = state["step"].to(parameter.device)
                    self._inner.state[parameter] = state

    def _set_gradients(self, gradients: List[Tuple[torch.Tensor, torch.Tensor]]) -> None:
        """Those that were kept, of parameters that are trained; the others have none, so that PyTorch leaves them alone."""
        kept = {id(parameter): gradient for parameter, gradient in gradients}
        for group in self._inner.param_groups:
            for parameter in group["params"]:
                if not parameter.requires_grad:
                    parameter.grad = None
                elif id(parameter) in kept:
                    parameter.grad = kept[id(parameter)]  # step() copies it

    @contextlib.contextmanager
    def _telling_that_it_waits(self) -> Iterator[None]:
        """The first step of a layout waits for all workers, also for one that does not change its own."""
        if self._earlier is None:
            yield
            return
        told = threading.Timer(_PATIENCE, logging.getLogger("sluice").warning,
                               [f"this worker waits until the others, too, train the layout {self._layout.name}: let all workers add, "
                                "freeze, unfreeze and load the same before the same step. One that was away, or has more batches, comes to it "
                               "later; for one that was lost, start the server with --start-timeout"])
        told.daemon = True
        told.start()
        try:
            yield
        finally:
            told.cancel()

    def _leave_earlier(self) -> None:
        """Leaves the layout before. Not sooner: a worker that stays there waits for this one, and trains nothing alone."""
        if self._earlier is not None:
            self._earlier.finish()
            if not self._earlier.left:
                self._earlier.leave()
            self._earlier = None

    # ---- What a step pushes and takes ----

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
        for place, (number, options) in enumerate(zip(self._numbers, groups_of(self._inner, self._of_program))):
            if number is None or options == self._told[place]:
                continue
            if options.get("kind_crc32") != self._told[place].get("kind_crc32"):
                raise ModelError(f"an option other than lr has changed in param_groups[{place}], and the server steps with the program's "
                                 f"{type(self._inner).__name__}, which takes only lr from the workers; let them step: where=\"worker\"")
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
        self._end_push(self._client.push(min(samples, MOST_SAMPLES), value))

    def _end_push(self, round_: Round) -> None:
        """After an error the gradients of rows stay, as the others do."""
        self.last = round_
        self._attached.clear()
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
        if self._held.take() and self.last is not None and not self._is_returning:
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
        self._leave_earlier()
        if not self._client.left:
            self._client.leave()
        self._client.away = self._comes_back = False

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """In its block, this worker does not take part, and no step waits for it: for a long evaluation.

            with optimizer.away():
                accuracy = evaluate(model)     # the model stays as it is

        Call state_dict() before the block: within, the server gives none. After the block it takes part again, with the job's parameters of then. If the workers step, it does so in its next
        zero_grad() or step(), and takes the model from another worker, which must still train; such a step() drops its
        gradient. A scheduler of its own has missed steps. It goes on with its own batches: nobody takes those for it, so it
        ends later than the others. While a worker is away, the job does not end, and the others must not change what is
        trained. In asynchronous modes no step waits anyhow.

        Raises:
          ModelError: the model has a RemoteEmbedding, whose rows a worker that is away cannot have; or reduce() was called, and
            step() was not.
          RemoteError: the job has several servers, or the server is gone. Or, when it takes part again, no other worker has the
            model any more.
        """
        self.wait()
        self._come_back()
        self._client.check_takes_part()
        if self._embeddings:
            raise ModelError("a worker that is away has no rows of a RemoteEmbedding; evaluate without away(), or in another process "
                             "with sluice.follow()")
        if self._step_to_take:
            raise ModelError("reduce() has brought the mean, with which the other workers step; call step() before away()")
        if isinstance(self._client, AwaitedClient):
            yield  # it does not take part yet
            return
        if self._overlap is not None:
            self._overlap.give_up()
        if self._local_steps:
            self._look_up()
        self._push_the_rest()
        self._job._hold()
        self._leave_earlier()
        self._client.leave()
        self._client.away = True
        try:
            yield
        except Exception:
            self._end_of_away()  # so that the job hears of it if the process ends
            raise
        except BaseException:  # Ctrl-C: it comes back in the next zero_grad() or step(), if there is one
            self._client.away, self._comes_back = False, self._client.away
            raise
        self._end_of_away()

    def _end_of_away(self) -> None:
        """The model of another worker comes with one of that one's pushes, and it may be waiting for this process."""
        if not self._client.away:
            return  # leave() was called
        self._client.away = False
        self._comes_back = True
        if self._held is None:
            self._drops = any(member.is_parameter and member.tensor.grad is not None and bool(member.tensor.grad.any())
                              for member in self._flat.members)
            self._come_back()

    def _come_back(self) -> bool:
        """Takes part again, if this worker was away. Returns whether it was."""
        if not self._comes_back:
            return False
        self._check_same_layout()
        self._is_returning = True
        try:
            if self._client.left:
                self._client.join_again()
            self._take_values()
            if self._held is not None:
                self._take_step()
            self._flat.zero_gradients()
        finally:
            self._is_returning = False
        self._comes_back = False  # last: what Ctrl-C interrupts goes on in the next call
        for embedding in self._embeddings.values():
            embedding.forget_gradients()
        if self._local_steps and self._elasticity != 1:
            self._centre = self._flat.values.clone()
        return True

    def _check_same_layout(self) -> None:
        """Before a worker that was away takes part again: raises if the others have changed what they train."""
        if _why_one_layout(self._where, self._local_steps, bool(self._embeddings)):
            return
        later = latest_layout(self._layout.model, self._job._model_names())
        if later is not None and later.number > self._layout.number:
            raise ModelError(f"{AwaitedClient(self._job, later).behind()}, while this worker was away; change what is trained when all "
                             "are there")

    def await_end(self) -> None:
        """Does the same as leave(), waits until all workers have left, and takes the final parameters. If the workers step,
        the model stays that of this worker's last step.

        Until report(), embeddings have the rows of the last step.
        """
        self.wait()
        self._come_back()
        self._look_up()
        self._push_the_rest()
        self._leave_earlier()
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


def _is_of_program(where: str, optimizer: torch.optim.Optimizer) -> bool:
    """Whether a server that steps does so with the program's optimizer. One that runs elsewhere is asked for a class that it
    does not have."""
    return brings_optimizer() or (where == "server" and type(optimizer) not in OPTIMIZERS)


def _steps_here(where: str, optimizer: torch.optim.Optimizer, job: Job, has_local_steps: bool, of_program: bool) -> bool:
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
    why_not = why_not_on_server(optimizer, of_program)
    if where == "server" and why_not:
        raise ModelError(f"{why_not}; give where=\"worker\", or another optimizer")
    if where == "auto" and why_not and job.speaks:
        logging.getLogger("sluice").warning("the workers step, each with %s, on the mean of all gradients: %s", kind, why_not)
    return where == "worker" or bool(why_not)


def check_optimizer(optimizer: torch.optim.Optimizer, job: Job, model: torch.nn.Module) -> None:
    """Raises the ModelError of a DistributedOptimizer that would be made of these."""
    _steps_here("auto", optimizer, job, False, _is_of_program("auto", optimizer))
    _named_parameters(optimizer, model, bool(embeddings_of(model)), set())


def _why_one_layout(where: str, local_steps: int, has_tables: bool) -> str:
    """Returns why the model keeps what it trains, and what to do; "" if that may change."""
    if where == "server":
        return "the server, which steps, would not train the new ones; leave where=\"server\" out, or add and unfreeze parameters before"
    if local_steps:
        return "with local_steps the server would not average the new ones; add and unfreeze parameters before"
    if has_tables:
        return ("beside a RemoteEmbedding the server would not train the new ones; add and unfreeze parameters before, or give those "
                "that change an optimizer of their own, with a name")
    return ""


def _changed(changes: str, why: str) -> ModelError:
    return ModelError(f"the optimizer's parameters, or which of them require a gradient, have changed since DistributedOptimizer was "
                      f"made ({changes}), and {why}")


def _later_layout(job: Job, name: str) -> Optional[Layout]:
    """Returns the layout that the other workers train, if they have gone on to one before this process came."""
    later = latest_layout(name, job._model_names())
    if later is None or later.step == 0:
        return None  # it has missed no step of the layouts before, and comes to that one as the others did
    if later.name in job._layouts:
        raise ModelError(f"this process has trained that model before, and has changed what it trains ({later.name}); give the "
                         "optimizer a name of its own: DistributedOptimizer(…, name=\"second\")")
    if job.rank is None or not later.is_of_first_launch:
        how = "was started by hand" if job.rank is None else "is of a job that goes on from an earlier launch"
        raise ModelError(f"{AwaitedClient(job, later).behind()}. This process {how}, and cannot come after them; start the job "
                         "again, with an empty --checkpoint-dir, and let the program load what it has saved")
    return later


def _keep_exact(kept: List[Tuple[Any, torch.Tensor]]) -> None:
    """Statistics that a batch has changed stay this worker's until they are pushed, and parameters of float64 keep what
    they have beyond float32."""
    with torch.no_grad():
        for member, value in kept:
            now = member.tensor
            if member.is_parameter:
                value = torch.where(value.to(torch.float32) == now.to(torch.float32), value, now)
            now.copy_(value)


def _check_arguments(job: Job, name: str, overlap: bool, local_steps: int) -> None:
    if job.is_server:
        raise ValueError("this process serves; call job.serve() instead of training")
    joined = job._joined.get(name, lambda: None)()
    if joined is not None and (joined.away or not joined.left):
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


def _named_parameters(optimizer: torch.optim.Optimizer, model: Optional[torch.nn.Module], has_tables: bool,
                      gone: Set[int]) -> Named:
    """Returns (name, parameter) of all parameters that the optimizer trains: none, if the model has tables only.

    `gone` are those that the model may not have any more, by id(): no gradient reaches them then.
    """
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
        if id(parameter) not in known and id(parameter) not in gone:
            raise ModelError(f"the optimizer's parameter {place}, of shape {list(parameter.shape)}, is none of `model`'s; "
                             "give the model that the optimizer trains")
    wanted = {id(parameter) for parameter in trained}
    return [(name, parameter) for name, parameter in named if id(parameter) in wanted]

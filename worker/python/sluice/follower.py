"""Sees the steps of a job that others train."""

import ctypes
import threading
import weakref
from typing import Any, Callable, Dict, List, Mapping, Optional

import torch

from sluice import _library, memory
from sluice._library import library
from sluice.constants import Constants, named_constants
from sluice.embedding import RemoteEmbedding, embeddings_of
from sluice.errors import ModelError
from sluice.job import Job, Setting, check_not_forked, connect, forked, model_name
from sluice.model import description_of, members_of, named_statistics, shared_vector, size_of
from sluice.module_watch import ModuleWatch


def follow(model: torch.nn.Module, job: Optional[Job] = None, *, every: int = 1, name: Optional[str] = None,
           look_up: Optional[Callable[[], object]] = None, **settings: Setting) -> "Follower":
    """Returns an iterator over the steps of a job: `model` holds the parameters of each while the loop's body runs.

        for step in sluice.follow(model, server="host:port"):
            print(step, accuracy(model))

    No step waits for a follower, which sees the newest step each time, and so may miss others. The server stays up
    until its followers have seen the last step. Then the iterator ends.

    Args:
      model: a torch.nn.Module with the tensors of the workers' `model`: names, shapes, types, and which require a
        gradient. Only its values change, between two steps of the loop.
      job: what sluice.start() has returned, to follow the job of which this process is a worker. Default: a server
        that runs elsewhere.
      every: the least number of steps between two that are seen. The last step is always seen.
      name: of the model, in a job that has several, as DistributedOptimizer has it; None: the one without a name. From
        elsewhere, a model of a run (Job.run()) has the run's name: "fold-2", or "fold-2.critic".
      look_up: for a model with RemoteEmbeddings: looks up every row that the loop's body needs, for example by a
        forward of the test's batches. It is called once, here, when all rows are zeros. From then on those rows come
        with the parameters, and are of the same step.
      **settings: how to reach a server that runs elsewhere, as flags by their names: server="host:port" (or
        SLUICE_SERVER=host:port in the environment), token_file, connect_timeout (seconds) and those of TLS.

    Yields: the number of the step, an int.

    Raises:
      ModelError: the model has a tensor that no server trains, or embeddings and there is no `look_up`. A forward in
        the loop raises it for a row that `look_up` has not looked up.
      RemoteError: the server refuses the model or this process, or a flag is wrong.
      ServerGoneError: the server could not be reached, or no worker has joined it, within connect_timeout.
    """
    return Follower(model, job, every, name, look_up, settings)


class Follower:
    """What sluice.follow() returns.

    Attributes:
      step: the step that the model holds, an int; None before the first.
      incarnation: which life of the server has made it: a server that was killed may have lost steps.
    """

    def __init__(self, model: torch.nn.Module, job: Optional[Job], every: int, name: Optional[str],
                 look_up: Optional[Callable[[], object]], settings: Mapping[str, Setting]) -> None:
        if job is not None and settings:
            raise ValueError(f"follow() got a job and {', '.join(settings)}; the job knows its server, so leave one out")
        if job is not None and job.is_server:
            raise ValueError("this process serves; follow its job from another process")
        if every < 1:
            raise ValueError(f"every is {every}, expected at least 1 step")
        embeddings = embeddings_of(model)
        if embeddings and look_up is None:
            raise ModelError("follow() does not know which rows of the model's embeddings to bring; give it look_up=FUNCTION, "
                             "which looks up all that the loop needs: look_up=lambda: model(test_batch)")
        self.step: Optional[int] = None
        self.incarnation: Optional[int] = None
        parameters = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
        statistics = named_statistics(model)
        self._members = members_of(parameters, statistics, bool(embeddings))
        self._constants = Constants(named_constants(model, parameters, statistics), shares=False)
        self._watch = ModuleWatch(model, self._members, self._constants.frozen)
        self._every = every
        buffer, self._values = shared_vector(size_of(self._members))
        description = description_of(self._members)
        owned = connect(settings, model_name(name)) if job is None else None
        followed = owned if job is None else job._handle_of(model_name(name, job._run))
        handle = ctypes.c_void_p()
        _library.check(library.sluice_follower_create(followed, ctypes.byref(description), buffer, ctypes.byref(handle)))
        self._handle = handle
        self._call = _library.Call(handle, library.sluice_follower_wait, _library.Followed())
        self._waits = self._call.under_way
        self._rows = _FollowedRows(embeddings)
        self._finalizer = weakref.finalize(self, _close, handle, self._waits, [self._rows.values, self._constants], owned, job)
        if look_up is not None and embeddings:
            self._rows.follow(look_up, handle)
        self._constants.tell(library.sluice_follower_set_constants, handle)

    def __iter__(self) -> "Follower":
        return self

    def __next__(self) -> int:
        check_not_forked()
        if not self._call.has_begun():  # else Ctrl-C has interrupted the wait
            self._finalizer.atexit = False  # a wait may take long, and the process ends without it
            self._call.begin(library.sluice_follow, self._every)
        code = self._call.wait()
        followed = self._call.result
        if code != _library.OK or followed.ended:
            end = StopIteration() if code == _library.OK else _library.last_error(code)
            self._end()
            raise end
        self._watch.adopt()
        self._constants.take(followed.constants_written)
        with torch.no_grad():
            for member in self._members:
                member.take(self._values[member.offset:member.end].view(member.tensor.shape))
        step: int = followed.step
        self.step, self.incarnation = step, followed.incarnation
        self._end()  # not before, so that a step whose copying Ctrl-C has interrupted is copied again
        return step

    def _end(self) -> None:
        self._finalizer.atexit = True
        self._waits[0] = False


class _FollowedRows:
    """The rows of a model's embeddings: first notes which are looked up, then gives those that the library writes."""

    def __init__(self, embeddings: Dict[str, RemoteEmbedding]) -> None:
        self._embeddings = embeddings
        self._noted: List[List[torch.Tensor]] = [[] for _ in embeddings]
        self._ids: List[torch.Tensor] = []  # of each table, ascending; empty while it notes
        self.values: List[torch.Tensor] = []  # their rows: the library writes there until the follower is freed
        for index, embedding in enumerate(embeddings.values()):
            embedding.bind(index, self)

    def follow(self, look_up: Callable[[], object], handle: ctypes.c_void_p) -> None:
        tables = [embedding.describe(name, (None, {})) for name, embedding in self._embeddings.items()]
        _library.check(library.sluice_follower_set_tables(handle, (_library.Table * len(tables))(*tables), len(tables)))
        with torch.no_grad():
            look_up()
        self._ids = [torch.unique(torch.cat([memory.whole_numbers(0), *noted])) for noted in self._noted]
        self.values += [memory.floats(ids.numel(), embedding.width)
                        for ids, embedding in zip(self._ids, self._embeddings.values())]
        for index, (ids, values) in enumerate(zip(self._ids, self.values)):
            count = ids.numel()
            _library.check(library.sluice_follow_rows(handle, index, memory.address_of(ids, torch.int64, count), count,
                                                      memory.address_of(values, torch.float32, *values.shape)))

    def pull_rows(self, table: int, ids: torch.Tensor, rows: torch.Tensor) -> None:
        """For RemoteEmbedding."""
        if not self._ids:
            self._noted[table].append(ids)
            rows.zero_()
            return
        known = self._ids[table]
        missing = ids[~torch.isin(ids, known)]
        if missing.numel():
            name = list(self._embeddings)[table]
            raise ModelError(f"the loop looks up row {int(missing[0])} of \"{name}\", which look_up did not; let look_up "
                             "look up all that the loop needs")
        rows.copy_(self.values[table][torch.searchsorted(known, ids)])

    def prefetch_rows(self, table: int, ids: torch.Tensor) -> None:
        """For RemoteEmbedding: does nothing, since rows come with the parameters."""


def _close(handle: ctypes.c_void_p, waits: List[bool], kept: List[Any], owned: Optional[ctypes.c_void_p],
           job: Optional[Job]) -> None:
    if forked():  # it has none of the library's threads
        return
    if waits[0]:  # Ctrl-C has interrupted it: what was begun may last until the job's next step
        threading.Thread(target=_free, args=(handle, kept, owned, job), daemon=True).start()
    else:
        _free(handle, kept, owned, job)


def _free(handle: ctypes.c_void_p, _kept: List[Any], owned: Optional[ctypes.c_void_p],
          _job: Optional[Job]) -> None:
    library.sluice_follower_free(handle)
    if owned is not None:
        library.sluice_job_free(owned)

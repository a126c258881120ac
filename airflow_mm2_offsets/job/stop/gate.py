"""Lets a query begin and end batches only while its driver looks for the fence.

It needs Java 9 or newer.

The query's own thread asks its ``triggerClock`` for the time before it writes ``offsets/N``, before
it calls the sink, and before it commits. The gate puts a clock in that place which waits while a
deadline is over. So it is shut at once when a paused JVM continues, whichever thread wakes first.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_MILLISECONDS = 10


class BatchGate:
    """Lets batches begin and end until a deadline; after it they wait until it is moved.

    The gate is shut until the first renewal.

    Raises:
        Py4JError: This Spark keeps its clock otherwise, or its Java is older than 9.
        TypeError: The same.
    """

    def __init__(self, spark: SparkSession, query: StreamingQuery) -> None:
        """Put the clock in its place."""
        jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no way to ask for it
        self._jvm = jvm
        self._execution: Any = query._jsq.streamingQuery()  # noqa: SLF001
        # In this order: a pause between the two makes deadlines earlier, never later.
        java_nanoseconds = jvm.java.lang.System.nanoTime()
        self._clock_difference = java_nanoseconds - time.monotonic_ns()
        self._deadline = jvm.java.util.concurrent.atomic.AtomicReference()
        self._set_deadline(time.monotonic())
        self._is_shut = False
        self._moving = threading.Lock()
        wait = _wait_while_overdue(jvm, self._deadline)
        self._clock = _clock_after(jvm, wait, self._execution.triggerClock())
        self._fields: dict[tuple[str, str], list[Any]] = {}
        self._place_clock()

    def renew(self, until: float) -> None:
        """Let batches begin and end until a ``time.monotonic()``; a shut gate stays shut."""
        with self._moving:
            if not self._is_shut:
                self._place_clock()
                self._set_deadline(until)

    def shut(self) -> None:
        """Shut the gate for good, whoever would renew it at the same moment."""
        with self._moving:
            self._is_shut = True
            self._set_deadline(time.monotonic())

    def _set_deadline(self, until: float) -> None:
        duration = self._jvm.scala.concurrent.duration
        nanoseconds = round(until * 1e9) + self._clock_difference
        unit = self._jvm.java.util.concurrent.TimeUnit.NANOSECONDS
        self._deadline.set(duration.Deadline(duration.FiniteDuration(nanoseconds, unit)))

    def _place_clock(self) -> None:
        """Replace the clock of the query, and since Spark 4 those of this batch and the next.

        Each batch hands its clock to the next. One that was just being made got the old clock, so
        this is done with each renewal.
        """
        owners = [self._execution, *self._contexts()]
        clocks = [
            (field, owner) for owner in owners for field in self._fields_of(owner, "triggerClock")
        ]
        for field, owner in clocks:  # all are found before one is replaced
            field.set(owner, self._clock)

    def _contexts(self) -> list[Any]:
        try:
            latest = self._execution.getLatestExecutionContext()
        except Py4JError:  # Spark 3 has none
            return []
        trigger = self._execution.triggerExecutor()
        fields = [] if trigger is None else self._fields_of(trigger, "execCtx")
        following = [field.get(trigger) for field in fields]
        return [context for context in (latest, *following) if context is not None]

    def _fields_of(self, owner: Any, name: str) -> list[Any]:  # noqa: ANN401 - a Java object
        """Return the fields of a name; the name of a Scala trait may stand before it."""
        kind = owner.getClass()
        key = (kind.getName(), name)
        if key not in self._fields:  # each question to the JVM takes its time
            self._fields[key] = _find_fields(kind, name)
        return self._fields[key]


def _find_fields(kind: Any, name: str) -> list[Any]:  # noqa: ANN401 - a Java class
    fields: list[Any] = []
    owner = kind
    while owner is not None:
        fields += [field for field in owner.getDeclaredFields() if field.getName().endswith(name)]
        owner = owner.getSuperclass()
    if not fields:
        raise TypeError(f"{kind.getName()} has no field {name}")
    for field in fields:
        field.setAccessible(True)
    return fields


def _wait_while_overdue(jvm: Any, deadline: Any) -> Any:  # noqa: ANN401 - Java objects
    """Return ``while (deadline.get().isOverdue()) Thread.sleep(10);`` as a method handle."""
    handles, kind, method = jvm.java.lang.invoke.MethodHandles, jvm.java.lang.Class.forName, _type
    lookup = handles.publicLookup()
    moment = kind("scala.concurrent.duration.Deadline")
    get = lookup.bind(deadline, "get", method(jvm, "()Ljava/lang/Object;"))
    get = get.asType(jvm.java.lang.invoke.MethodType.methodType(moment))
    is_overdue = lookup.findVirtual(moment, "isOverdue", method(jvm, "()Z"))
    sleep = lookup.findStatic(kind("java.lang.Thread"), "sleep", method(jvm, "(J)V"))
    sleep = handles.insertArguments(sleep, 0, _array(jvm, "java.lang.Object", POLL_MILLISECONDS))
    wait = handles.whileLoop(None, handles.collectArguments(is_overdue, 0, get), sleep)
    void = kind("java.lang.Void").getField("TYPE").get(None)
    return _ending_query(jvm, wait, void, kind("java.lang.InterruptedException"))


def _ending_query(jvm: Any, handle: Any, returns: Any, caught: Any) -> Any:  # noqa: ANN401 - Java objects
    """Return a handle that turns an exception into one that Spark takes for an interrupt.

    Spark's ``Clock`` declares no exception, so a proxy of it can't throw InterruptedException.
    """
    handles = jvm.java.lang.invoke.MethodHandles
    error = jvm.java.io.UncheckedIOException(jvm.java.io.InterruptedIOException("the job stops"))
    throw = handles.throwException(returns, error.getClass()).bindTo(error)
    return handles.catchException(handle, caught, handles.dropArguments(throw, 0, [caught]))


def _clock_after(jvm: Any, wait: Any, clock: Any) -> Any:  # noqa: ANN401 - Java objects
    """Return a ``Clock`` that calls ``wait`` before each call of ``clock``.

    It is a ``java.lang.reflect.Proxy``. Each step below makes a method handle; together they are
    this handler: ``(proxy, method, args) -> { wait(); return method.invoke(clock, args); }``.
    """
    handles, kind = jvm.java.lang.invoke.MethodHandles, jvm.java.lang.Class.forName
    # publicLookup() does not find caller-sensitive methods like Method.invoke; lookup() does, with
    # the rights of Py4J's class that calls it.
    invoke = handles.lookup().findVirtual(
        kind("java.lang.reflect.Method"),
        "invoke",
        _type(jvm, "(Ljava/lang/Object;[Ljava/lang/Object;)Ljava/lang/Object;"),
    )
    # (method, object, args) becomes (method, args): the object is always ``clock``.
    invoke = handles.insertArguments(invoke, 1, _array(jvm, "java.lang.Object", clock))
    # ``clock`` is interrupted while it waits for the next trigger. This wraps that exception:
    interrupted = kind("java.lang.reflect.InvocationTargetException")
    invoke = _ending_query(jvm, invoke, kind("java.lang.Object"), interrupted)
    # (method, args) becomes (proxy, method, args); the proxy is not used.
    invoke = handles.dropArguments(invoke, 0, [kind("java.lang.Object")])
    handler = jvm.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(
        kind("java.lang.reflect.InvocationHandler"), handles.foldArguments(invoke, wait)
    )
    loader = clock.getClass().getClassLoader()
    interface = kind("org.apache.spark.util.Clock", True, loader)  # noqa: FBT003 - a Java method
    interfaces = _array(jvm, "java.lang.Class", interface)
    return jvm.java.lang.reflect.Proxy.newProxyInstance(loader, interfaces, handler)


def _type(jvm: Any, descriptor: str) -> Any:  # noqa: ANN401 - Java objects
    return jvm.java.lang.invoke.MethodType.fromMethodDescriptorString(descriptor, None)


def _array(jvm: Any, kind: str, value: Any) -> Any:  # noqa: ANN401 - Java objects
    array = jvm.java.lang.reflect.Array.newInstance(jvm.java.lang.Class.forName(kind), 1)
    array[0] = value
    return array

"""Lambda: functions run as on AWS, by the real runtime client in processes of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from local.emulator import stock
from local.emulator.lambda_worker import FunctionSpec, Outcome, WorkerLimits, function_environment
from local.emulator.package_cache import PackageCache
from local.emulator.patches.registry import PatchContext, patch
from local.emulator.worker_pools import WorkerPools

if TYPE_CHECKING:
    from pathlib import Path

    from local.emulator.stock import Foreign


@patch("lambda-runtime")
def run_functions_by_the_real_runtime_client(context: PatchContext) -> None:
    """Python functions run by `awslambdaric`, with their own interpreter, packages and environment.

    AWS: errorType is the exception's class, the environment stays warm after an error, /var/task comes before
    layers, nothing of the host leaks in, concurrency is bounded. Stock: one JSON-line worker on ministack's own
    interpreter and site-packages, every exception is `Runtime.HandlerError` and kills the worker, layers come
    first, the host's environment is copied in, 50 ms are added to a silent invocation, processes are unbounded.
    """
    service = stock.module("services.lambda_svc")
    runtime = stock.module("core.lambda_runtime")
    settings = context.settings
    cache = PackageCache(settings.cache_dir, settings.runtime_python)
    limits = WorkerLimits(
        settings.workers_per_function,
        settings.workers_in_all,
        settings.idle_seconds,
        settings.parallel_cold_starts,
    )
    pools = WorkerPools(limits, settings.runtime_python)
    stock_execute, stock_invalidate, stock_reset = (
        service._execute_function_warm,
        runtime.invalidate_worker,
        runtime.reset,
    )

    def execute(function: dict[str, Any], event: Foreign, request_id: str) -> Foreign:
        config = function.get("config") or function
        if not str(config.get("Runtime", "")).startswith("python") or not function.get("code_zip"):
            return stock_execute(function, event, request_id)
        spec = function_spec(config, function["code_zip"], cache, f"http://127.0.0.1:{settings.port}")
        trace_id = service._xray_trace_id_for_invocation(config)
        if context.observer is None:
            outcome = pools.invoke(spec, event, request_id, trace_id)
        else:
            outcome = context.observer.invoke(pools, spec, event, request_id, trace_id)
        return _as_ministack_result(outcome)

    def invalidate(name: str, *arguments: Foreign, **options: Foreign) -> None:
        stock_invalidate(name, *arguments, **options)
        pools.forget(name)

    def reset() -> None:
        stock_reset()
        for name in pools.census():
            pools.forget(name)

    service._execute_function_warm = execute
    _unzip_at_deployment(service, cache)
    # both modules hold a reference to the name
    service.invalidate_worker = runtime.invalidate_worker = invalidate
    runtime.reset = reset
    _OPEN_POOLS.append(pools)


def _unzip_at_deployment(service: Foreign, cache: PackageCache) -> None:
    """Unzip and compile when the stack is deployed: seconds for a layer, and no first request should pay them."""
    provisioners = stock.module("services.cloudformation.provisioners")
    handlers = provisioners._RESOURCE_HANDLERS["AWS::Lambda::Function"]

    def unzipping(provision: Foreign) -> Foreign:
        def provisioned(*arguments: Foreign, **options: Foreign) -> Foreign:
            done = provision(*arguments, **options)
            function = service._functions.get(done[0] if isinstance(done, tuple) else done)
            if function and function.get("code_zip"):
                function_packages(function["config"], function["code_zip"], cache)
            return done

        return provisioned

    for operation in ("create", "update"):
        handlers[operation] = unzipping(handlers[operation])


_OPEN_POOLS: list[WorkerPools] = []


def close_pools() -> None:
    """Kill all workers of this process; the launcher calls it on its way out."""
    while _OPEN_POOLS:
        _OPEN_POOLS.pop().close()


def function_spec(config: dict[str, Any], code: bytes, cache: PackageCache, endpoint: str) -> FunctionSpec:
    """What a worker for this function configuration must look like."""
    runtime = stock.module("core.lambda_runtime")
    _, region = runtime._account_region_from_function_config(config)
    code_folder, layers = function_packages(config, code, cache)
    return FunctionSpec(
        name=config["FunctionName"],
        arn=config["FunctionArn"],
        handler=config.get("Handler", ""),
        runtime=config["Runtime"],
        timeout=float(config.get("Timeout", 3)),
        memory=int(config.get("MemorySize", 128)),
        version=config.get("Version", "$LATEST"),
        code=code_folder,
        layers=layers,
        environment=function_environment((config.get("Environment") or {}).get("Variables") or {}),
        credentials=function_environment(runtime.execution_credentials(config)),
        region=region,
        endpoint=endpoint,
        logging=logging_variables(config.get("LoggingConfig") or {}),
    )


def logging_variables(config: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """How AWS tells the runtime interface client the function's log group, format and level."""
    variables = {
        "AWS_LAMBDA_LOG_FORMAT": config.get("LogFormat"),
        "AWS_LAMBDA_LOG_GROUP_NAME": config.get("LogGroup"),
        "AWS_LAMBDA_LOG_LEVEL": config.get("ApplicationLogLevel"),
    }
    return tuple((name, str(value)) for name, value in variables.items() if value)


def function_packages(
    config: dict[str, Any], code: bytes, cache: PackageCache
) -> tuple[Path, tuple[Path, ...]]:
    """The folders of a function's code and of its layers, in order."""
    digest = config.get("CodeSha256")
    layers = [_layer(reference, cache) for reference in config.get("Layers") or []]
    folder = cache.directory_of(code, f"code:{digest}" if digest else None)
    return folder, tuple(layer for layer in layers if layer is not None)


def _layer(reference: Foreign, cache: PackageCache) -> Path | None:
    arn = reference if isinstance(reference, str) else reference.get("Arn", "")
    if (directory := cache.known(arn)) is not None:
        return directory
    package = stock.module("services.lambda_svc")._resolve_layer_zip(reference)
    return None if package is None else cache.directory_of(package, arn)


def _as_ministack_result(outcome: Outcome) -> dict[str, Any]:
    result = {"body": outcome.body, "log": outcome.log}
    return result if outcome.kind == "ok" else {**result, "error": True}

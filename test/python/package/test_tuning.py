"""The tuner: what it measures, keeps and leaves out, with times that tests invent."""

import json
import math
import types
from dataclasses import replace

import pytest

import kvcache
from kvcache import AttentionConfig, TuningError
from kvcache.compilation import toolchain, tuning_files
from kvcache.devices.gpu_timer import HungError, Model, summarize
from kvcache.tuning import candidates, progress, ranking, trials, tuner

CHIP = "sm_90a"
MODEL = Model("NVIDIA H200", CHIP, "580.95.05", 132, 60 << 20, 228 << 10)
PARAMS = kvcache.KVCacheParams("bf16", 8, 128, page_size=16, total_num_layers=1)


def make_operation(**options):
    return kvcache.ops.attention(PARAMS, 32, target=f"cuda:{CHIP}", **options)


def make_latent(**options):
    """64 heads over latent rows, which seesaw is for."""
    params = kvcache.KVCacheParams("bf16", 1, 576, page_size=64, total_num_layers=1, is_mla=True)
    return kvcache.ops.attention(params, 64, target=f"cuda:{CHIP}", value_dim=512, **options)


class Clock:
    """A timer of calls whose time is that of a function of the last operation's config.

    Attributes:
        measured: The configs of all calls.
        failures: Errors by the texts of configs, which a wait for their kernels raises.
    """

    def __init__(self, find_time):
        self.find_time = find_time
        self.measured, self.failures = [], {}
        self.is_lost = False

    def make_example(self, number=0):
        def call(operation):
            self._last = operation.spec.config, number
            self.measured.append(operation.spec.config)

        return call

    def make_timer(self, device, l2_bytes):
        return types.SimpleNamespace(measure=self._measure, close=lambda: None)

    def _measure(self, call, count, seconds):
        if self.is_lost:
            raise kvcache.CheckError("cuEventRecord: CUDA error 700")
        self._last = None
        for _ in range(count):
            call()
        if self._last is None:
            return [1.0] * count
        config, number = self._last
        if error := self.failures.get(str(config)):
            self.is_lost = "700" in str(error)
            raise error
        return [self.find_time(config, number)] * count


@pytest.fixture
def make_clock(monkeypatch, tmp_path):
    """Makes a clock for the tuner of a machine with one H200, whose tuning folder is empty."""
    monkeypatch.setenv("KVCACHE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KVCACHE_TUNING", raising=False)
    monkeypatch.setattr(tuner, "find_model", lambda device: MODEL)
    monkeypatch.setattr(tuning_files, "find_models", lambda: (MODEL,))
    monkeypatch.setattr(ranking, "has_tools", lambda: False)

    def make(find_time):
        clock = Clock(find_time)
        monkeypatch.setattr(trials, "GPUTimer", clock.make_timer)
        return clock

    yield make
    kvcache.ops.making.forget()


def prefer(**fields):
    """Times of 50 us for configs with these fields, and of 100 us for others."""

    def find_time(config, number):
        return 50.0 if all(getattr(config, name) == value for name, value in fields.items()) else 100.0

    return find_time


def get_planned(operation):
    return candidates.plan(operation, CHIP).config


# --- The choice -----------------------------------------------------------------------


@pytest.mark.long
def test_fastest_config_is_kept_for_later_operations(make_clock, monkeypatch):
    clock = make_clock(prefer(stages=3, schedule="pipelined"))
    operation = make_operation()
    result = kvcache.tune(operation, clock.make_example())
    assert (result.config.stages, result.config.schedule) == (3, "pipelined")
    assert result.microseconds == (50,) and result.planned_microseconds == (100,)
    assert result.operation.spec.config == result.config
    entry = json.loads(result.file.read_text())["shapes"][candidates.plan(operation, CHIP).shape]
    assert entry["config"] == result.config.given and not entry["other_bits"]
    assert entry["examples"] == ["call"]
    assert result.measured == len(set(clock.measured)) > 5
    later = make_operation()
    assert later is not operation and later is make_operation()
    (tuned,) = later.compile(CHIP).kernels.values()
    (wanted,) = result.operation.compile(CHIP).kernels.values()
    assert tuned.ptx == wanted.ptx
    monkeypatch.setenv("KVCACHE_TUNING", "off")
    (planned,) = later.compile(CHIP).kernels.values()
    assert planned.ptx == operation.with_config(get_planned(operation)).compile(CHIP).kernels[planned.name].ptx
    assert planned.ptx != tuned.ptx


def test_launches_of_the_fastest_kernel_are_measured(make_clock):
    clock = make_clock(lambda config, _: 100 - config.stages + (config.persistent != 396))
    result = kvcache.tune(make_operation(split_tokens=256), clock.make_example())
    assert (result.config.stages, result.config.persistent) == (4, 396)


def test_small_gains_are_no_gains(make_clock):
    clock = make_clock(lambda config, _: 99.5 if config.stages == 3 else 100)
    operation = make_operation()
    assert kvcache.tune(operation, clock.make_example()).config == get_planned(operation)


def test_all_examples_have_one_config(make_clock):
    times = {2: (100, 100), 1: (30, 300), 3: (80, 80)}
    clock = make_clock(lambda config, number: times.get(config.stages, (100, 100))[number])
    result = kvcache.tune(make_operation(), clock.make_example(0), clock.make_example(1))
    assert result.config.stages == 3 and result.microseconds == (80, 80)


@pytest.mark.parametrize("options", [{}, {"window": 64}, {"split_tokens": 256}, {"split_tokens": 256, "split_rows": 4}])
def test_measured_configs_have_equal_bits(make_clock, options):
    clock = make_clock(lambda config, _: config.rows or 1)
    operation = make_operation(**options)
    kvcache.tune(operation, clock.make_example())
    found = {candidates.plan(operation.with_config(config), CHIP).bits for config in clock.measured}
    assert len(found) == 1 < len(set(clock.measured))
    # Tiles of a row begin where the first row of its block sees a token.
    assert (found.pop().rows is None) == (options in ({}, {"split_tokens": 256}))


@pytest.mark.long
def test_other_bits_are_measured_if_they_are_allowed(make_clock):
    clock = make_clock(prefer(mma="mma_sync", keys=32))
    operation = make_operation()
    assert kvcache.tune(operation, clock.make_example()).config == get_planned(operation)
    result = kvcache.tune(operation, clock.make_example(), allow_other_bits=True)
    assert (result.config.mma, result.config.keys) == ("mma_sync", 32)
    entry = json.loads(result.file.read_text())["shapes"][candidates.plan(operation, CHIP).shape]
    assert entry["other_bits"]
    (kernel,) = make_operation().compile(CHIP).kernels.values()
    assert "mma.sync" in kernel.ptx


@pytest.mark.parametrize("allow_other_bits", [False, True])
def test_schedules_of_latent_rows_have_other_bits(allow_other_bits):
    operation = make_latent()
    planned = candidates.plan(operation, CHIP)
    configs = candidates.list_kernels(operation, CHIP, planned, allow_other_bits)
    assert planned.config.schedule == "seesaw" == configs[0].schedule
    wanted = replace(planned.config, schedule=None)
    same = [config.schedule for config in configs if replace(config, schedule=None) == wanted]
    assert same == (["seesaw", "prefetch"] if allow_other_bits else ["seesaw"])


@pytest.mark.parametrize("allow_other_bits", [False, True])
def test_roles_are_measured_only_with_other_bits(make_clock, monkeypatch, allow_other_bits):
    """A share of their powers are polynomials."""
    model = replace(MODEL, gpu="NVIDIA B200", chip="sm_100a")
    clock = make_clock(prefer(schedule="roles", keys=64))
    monkeypatch.setattr(tuner, "find_model", lambda device: model)
    operation = kvcache.ops.attention(PARAMS, 32, target="cuda:sm_100a")
    result = kvcache.tune(operation, clock.make_example(), allow_other_bits=allow_other_bits)
    assert result.config.schedule == ("roles" if allow_other_bits else "prefetch")
    assert {config.rows == 256 for config in clock.measured if config.schedule == "roles"} <= {allow_other_bits}


def test_fields_of_the_operation_are_kept(make_clock):
    clock = make_clock(lambda config, _: config.rows)
    operation = make_operation(tile_rows=128, config=AttentionConfig(stages=2))
    kvcache.tune(operation, clock.make_example(), allow_other_bits=True)
    assert {(config.rows, config.stages) for config in clock.measured} == {(128, 2)}


def test_time_ends_the_search(make_clock):
    clock = make_clock(prefer(stages=3))
    operation = make_operation()
    result = kvcache.tune(operation, clock.make_example(), seconds=1e-6)
    assert result.measured == 1 and result.config == get_planned(operation)


# --- Failures -------------------------------------------------------------------------


def find_config(operation, **fields):
    planned = candidates.plan(operation, CHIP)
    configs = candidates.list_kernels(operation, CHIP, planned, allow_other_bits=False)
    return next(each for each in configs if all(getattr(each, name) == value for name, value in fields.items()))


def test_kernel_that_fails_is_left_out(make_clock):
    clock = make_clock(prefer(stages=3))
    operation = make_operation()
    wrong = find_config(operation, stages=3, schedule="ping_pong")
    clock.failures[str(wrong)] = kvcache.CheckError("cuLaunchKernel: CUDA error 701")
    result = kvcache.tune(operation, clock.make_example())
    assert result.failed == {str(wrong): "cuLaunchKernel: CUDA error 701"}
    assert result.config.stages == 3 and result.config != wrong
    clock.measured.clear()
    kvcache.tune(operation, clock.make_example())
    assert wrong not in clock.measured
    entry = json.loads(result.file.read_text())["shapes"][candidates.plan(operation, CHIP).shape]
    assert list(entry["failed"]) == [str(wrong)]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (HungError("a kernel has not ended within 20 s"), "a kernel has not ended within 20 s"),
        (kvcache.CheckError("cuEventQuery: CUDA error 700"), "cuEventQuery: CUDA error 700"),
    ],
    ids=["hang", "lost context"],
)
def test_kernel_that_ends_the_context_is_left_out_of_the_next_run(make_clock, error, message):
    clock = make_clock(prefer(stages=3))
    operation = make_operation()
    wrong = find_config(operation, stages=3, schedule="ping_pong")
    clock.failures[str(wrong)] = error
    with pytest.raises(TuningError, match=f"the GPU runs nothing more after .*: {message}\n.*is left out then"):
        kvcache.tune(operation, clock.make_example())
    next_clock = make_clock(prefer(stages=3))
    result = kvcache.tune(operation, next_clock.make_example())
    assert wrong not in next_clock.measured and result.config.stages == 3


def test_interrupt_keeps_what_was_measured(make_clock):
    operation = make_operation()
    clock = make_clock(prefer(stages=3))

    def call(operation):
        if len(set(clock.measured)) == 9:
            raise KeyboardInterrupt
        clock.make_example()(operation)

    with pytest.raises(KeyboardInterrupt):
        kvcache.tune(operation, call)
    (entry,) = tuning_files.read(tuning_files.find_path(MODEL)).shapes.values()
    assert entry["config"]["stages"] == 3 and entry["measured"] == 8


@pytest.mark.parametrize(
    ("later", "is_error"), [(math.nan, False), (kvcache.CheckError("cuEventQuery: CUDA error 719"), True)]
)
def test_finalist_that_fails_later_loses_these_times(make_clock, later, is_error):
    operation = make_operation()
    winner = find_config(operation, stages=3, schedule="pipelined")
    calls = []

    def find_time(config, number):
        calls.append(config)
        if config != winner:
            return 90.0 if config.stages == 3 else 100.0
        if calls.count(winner) > 2 and is_error:
            raise later
        return later if calls.count(winner) > 2 else 50.0

    clock = make_clock(find_time)
    result = kvcache.tune(operation, clock.make_example())
    assert (result.config == winner) != is_error and result.config.stages == 3
    assert list(result.failed) == ([str(winner)] if is_error else [])


@pytest.mark.parametrize("time", [math.nan, -1.0, 0.0, math.inf])
def test_times_that_are_no_positive_numbers_are_no_times(make_clock, time):
    clock = make_clock(lambda config, _: time if config.stages == 3 else 100.0)
    operation = make_operation()
    result = kvcache.tune(operation, clock.make_example())
    assert set(result.failed.values()) == {"the times of the GPU are no positive numbers"}
    assert all("stages = 3" in config for config in result.failed)
    liar = make_clock(lambda config, _: time)
    with pytest.raises(TuningError, match="expects the times of the GPU to be positive numbers, got"):
        kvcache.tune(operation, liar.make_example())


def test_planned_config_that_hangs_is_an_error(make_clock):
    clock = make_clock(prefer())
    operation = make_operation()
    clock.failures[str(get_planned(operation))] = HungError("a kernel has not ended within 20 s")
    with pytest.raises(TuningError, match="the planned config can't be measured: a kernel has not ended"):
        kvcache.tune(operation, clock.make_example())


def test_error_of_an_example_is_raised(make_clock):
    make_clock(prefer())

    def call(operation):
        raise KeyError("no such array")

    with pytest.raises(KeyError, match="no such array"):
        kvcache.tune(make_operation(), call)


def test_outliers_of_times_are_dropped():
    assert summarize([10, 11, 12, 11, 500]) == 11
    assert summarize([math.nan, 10, -3, 10, 10]) == 10
    assert summarize([math.nan, -1, 10]) is None


# --- Arguments ------------------------------------------------------------------------


def test_wrong_arguments_are_rejected(make_clock):
    clock = make_clock(prefer())
    example = clock.make_example()
    with pytest.raises(TuningError, match="expects 'operation' to be of kvcache.ops.attention.*got CopyPages"):
        kvcache.tune(kvcache.ops.copy_pages(PARAMS), example)
    with pytest.raises(TuningError, match="expects 'operation' to have target 'cuda', got 'cpu'"):
        kvcache.tune(kvcache.ops.attention(PARAMS, 32), example)
    with pytest.raises(TuningError, match="expects at least one example"):
        kvcache.tune(make_operation())
    with pytest.raises(TypeError, match="expects example 1 to be a function of the operation, got 3"):
        kvcache.tune(make_operation(), example, 3)
    with pytest.raises(ValueError, match="expects 'seconds' to be positive and finite, got 0"):
        kvcache.tune(make_operation(), example, seconds=0)
    with pytest.raises(TypeError, match="allow_other_bits"):
        kvcache.tune(make_operation(), example, allow_other_bits="yes")
    assert not clock.measured


def test_operation_without_choices_is_an_error(make_clock):
    clock = make_clock(prefer())
    operation = make_operation(config=AttentionConfig(mma="none", l2_hint="evict_normal"))
    with pytest.raises(TuningError, match="expects an operation with choices"):
        kvcache.tune(operation, clock.make_example())
    assert not clock.measured


def test_operation_that_the_chip_can_not_have_is_an_error(make_clock):
    clock = make_clock(prefer())
    operation = kvcache.ops.attention(PARAMS, 32, target="cuda:sm_100a", config=AttentionConfig(mma="tcgen05"))
    with pytest.raises(kvcache.CompileError, match="'mma' and 'rows' that the chip has"):
        kvcache.tune(operation, clock.make_example())
    assert not clock.measured


@pytest.mark.parametrize("variable", ["KVCACHE_TUNING", "KVCACHE_CACHE"])
def test_off_needs_a_file(make_clock, monkeypatch, tmp_path, variable):
    clock = make_clock(prefer(stages=3))
    monkeypatch.setenv(variable, "off")
    with pytest.raises(TuningError, match="expects 'file': KVCACHE_TUNING or KVCACHE_CACHE is off"):
        kvcache.tune(make_operation(), clock.make_example())
    result = kvcache.tune(make_operation(), clock.make_example(), file=tmp_path / "own.json")
    assert result.file == tmp_path / "own.json" and tuning_files.read(result.file).gpu == "NVIDIA H200"


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ('{"format": "kvca', "is damaged"),
        ("{}", "is no tuning file"),
        ({"version": 2}, "has version 2, and kvcache .* reads version 1"),
        ({"gpu": "NVIDIA H100"}, "is for gpu 'NVIDIA H100', and this GPU has 'NVIDIA H200'"),
        ({"chip": "sm_100a"}, "is for chip 'sm_100a', and this GPU has 'sm_90a'"),
        ({"driver": "570.1"}, "is for driver '570.1', and this GPU has '580.95.05'"),
    ],
)
def test_file_that_can_not_be_used_is_an_error_and_stays(make_clock, tmp_path, contents, message):
    clock = make_clock(prefer(stages=3))
    file = tmp_path / "own.json"
    right = {"format": "kvcache-tuning", "version": 1, "gpu": MODEL.gpu, "chip": CHIP, "driver": MODEL.driver, "shapes": {}}
    file.write_text(contents if isinstance(contents, str) else json.dumps(right | contents))
    before = file.read_text()
    with pytest.raises(TuningError, match=message):
        kvcache.tune(make_operation(), clock.make_example(), file=file)
    assert not clock.measured and file.read_text() == before


# --- The order ------------------------------------------------------------------------


def test_without_tools_configs_with_fewer_changes_come_first():
    operation = make_operation()
    planned = candidates.plan(operation, CHIP)
    configs = candidates.list_kernels(operation, CHIP, planned, allow_other_bits=False)
    changes = [candidates._count_changes(config, planned.config) for config in configs]
    assert configs[0] == planned.config and changes == sorted(changes) and changes[-1] > 1


def test_missing_tools_keep_the_order(monkeypatch):
    def find_tool(name):
        raise kvcache.ToolchainError(f"{name} was not found")

    monkeypatch.setattr(toolchain, "find_tool", find_tool)
    configs = [AttentionConfig(stages=count) for count in (2, 1, 3)]
    assert ranking.rank(make_operation(), configs, MODEL, 10) == configs


def test_cheaper_machine_code_comes_first(monkeypatch):
    costs = {2: 5.0, 1: 3.0, 3: math.inf, 4: 1.0}
    monkeypatch.setattr(ranking, "has_tools", lambda: True)
    monkeypatch.setattr(ranking, "estimate", lambda _, config, model: costs[config.stages])
    configs = [AttentionConfig(stages=count) for count in (2, 3, 1, 4)]
    ranked = ranking.rank(make_operation(), configs, MODEL, 10)
    assert [config.stages for config in ranked] == [2, 4, 1, 3]
    assert ranking.rank(make_operation(), configs, MODEL, -1) == configs


@pytest.mark.long
@pytest.mark.skipif(not ranking.has_tools(), reason="needs ptxas and nvdisasm")
def test_overlapped_products_cost_less():
    operation = make_operation()
    planned = get_planned(operation)
    (other,) = (find_config(operation, stages=2, schedule="prefetch", rows=128),)
    assert ranking.estimate(operation, planned, MODEL) < ranking.estimate(operation, other, MODEL) < math.inf
    assert ranking.estimate(operation, AttentionConfig(mma="tcgen05"), MODEL) == math.inf


@pytest.mark.long
@pytest.mark.skipif(not ranking.has_tools(), reason="needs ptxas and nvdisasm")
def test_iteration_of_seesaw_is_two_tiles(monkeypatch):
    """A score costs the products of 576 + 512 elements, at 4,096 operations in a clock."""
    monkeypatch.setattr(ranking, "_BYTES", 1 << 20)
    monkeypatch.setattr(ranking, "_SHARED_TILE_BYTES", 1 << 20)
    monkeypatch.setattr(ranking, "_LATENCY", 1)
    operation = make_latent()
    cost = ranking.estimate(operation, get_planned(operation), MODEL)
    assert cost == pytest.approx(2 * (576 + 512) / 4096)
    prefetch = make_latent(config=AttentionConfig(schedule="prefetch"))
    assert cost < ranking.estimate(prefetch, get_planned(prefetch), MODEL) < math.inf


# --- Progress -------------------------------------------------------------------------


def test_progress_says_how_far_it_is(capsys):
    with progress.Progress(True) as bar:
        bar.begin(4, 0)
        bar.step(1.25)
    assert capsys.readouterr().err == "\r[######..................] 1 of 4 configs, best 1.25x, 0 s left \n"
    with progress.Progress(None) as bar:
        bar.step(1)
    assert capsys.readouterr().err == ""

"""The tuner from end to end on the stand-in driver, whose kernels run on the emulator."""

import json
import math
import time

import ml_dtypes
import numpy as np
import pytest
import standin
from standin import CHIP

import kvcache
from kvcache import AttentionConfig, KVCacheParams, TuningError
from kvcache.__main__ import main
from kvcache.devices import gpu_timer
from kvcache.devices.gpu_timer import GPUTimer, HungError
from kvcache.tuning import synthetic

BF16 = ml_dtypes.bfloat16
PARAMS = KVCacheParams("bf16", 1, 32, page_size=16, total_num_layers=1)
NOT_READY, ILLEGAL_ADDRESS = 600, 700


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """The folder of compiled code and of tuning files."""
    monkeypatch.setenv("KVCACHE_CACHE", str(tmp_path))
    monkeypatch.delenv("KVCACHE_TUNING", raising=False)
    gpu_timer.find_models.cache_clear()
    yield tmp_path
    gpu_timer.find_models.cache_clear()
    kvcache.ops.making.forget()


@pytest.mark.long
def test_tuned_operation_has_the_bits_of_the_planned_one(driver, monkeypatch):
    options = {"split_tokens": 32, "max_splits": 2, "tile_rows": 16, "scheduled_blocks": 2}
    operation = kvcache.ops.attention(PARAMS, 4, target=f"cuda:{CHIP}", **options)
    random = np.random.default_rng(0)
    blocks = random.standard_normal((4, *PARAMS.shape_per_block)).astype(BF16)
    arrays = {"blocks": blocks, "lengths": np.array([40], np.int32), "lut": np.array([[2, 0, 3]], np.int32)}
    arrays["row_offsets"] = np.array([0, 1], np.int32)
    placed = {name: standin.DeviceArray(array) for name, array in arrays.items()}
    step = kvcache.StepInputs.of(
        **{name: each.tensor() for name, each in placed.items()}, max_seq_length=1, max_cache_length=40
    )
    q = standin.DeviceArray(random.standard_normal((1, 4, 32)).astype(BF16))
    out = standin.DeviceArray(np.zeros((1, 4, 32), BF16))

    def call(operation):
        operation(step, 0, q.tensor(), out=out.tensor(), scale=0.2)

    def attend(operation):
        driver.emulate(operation.write_source(CHIP))
        call(operation)

    def find_bytes(function, operation):
        function(operation)
        return out.numpy().tobytes()

    wanted = find_bytes(attend, operation)
    result = kvcache.tune(operation, attend, seconds=8)
    assert result.measured > 1 and not result.failed
    assert all(0 < each < math.inf for each in (*result.microseconds, *result.planned_microseconds))
    assert find_bytes(attend, result.operation) == wanted != bytes(len(wanted))
    again = kvcache.ops.attention(PARAMS, 4, target=f"cuda:{CHIP}", **options)
    assert find_bytes(call, again) == wanted  # its kernel has the file's config, as the one before
    fields = json.loads(result.file.read_text())
    assert (fields["gpu"], fields["chip"], fields["driver"]) == ("stand-in", CHIP, "CUDA 13.0")


# --- The command ----------------------------------------------------------------------

COMMAND = ["tune", "2x40", "1x20x20", "--heads", "4/1", "--head-dim", "32", "--target", f"cuda:{CHIP}", "--seconds", "2"]


@pytest.mark.long
def test_command_prints_times_and_writes_a_file(driver, folder, capsys):
    file = folder / "own.json"
    with driver.idle():
        assert main([*COMMAND, "--option", "window=16", "--file", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("configs measured, 0 failed")
    assert [line.split()[0] for line in lines[1:3]] == ["2x40x1", "1x20x20"]
    assert lines[3].startswith("#kvcache.attention_config<mma = ") and lines[4] == f"in {file}"
    ((shape, entry),) = json.loads(file.read_text())["shapes"].items()
    assert "window = 16" in shape and AttentionConfig(**entry["config"])
    assert entry["examples"] == ["2x40x1", "1x20x20"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--option", "window"], "expects --option to be NAME=VALUE, got 'window'"),
        (["--option", "windows=3"], "unexpected keyword argument 'windows'"),
        (["--scales", "f32"], "expects --scales to be two words, as in 32/8 or f32/128, got 'f32'"),
        (["--heads", "4"], "expects --heads to be two words"),
        (["2x"], "expects a shape to be BATCHxLENGTH or BATCHxLENGTHxNEW, got '2x'"),
        (["1x3x4"], "expects at most LENGTH new tokens, got '1x3x4'"),
        (["--target", "cpu"], "expects 'operation' to have target 'cuda', got 'cpu'"),
        (["--device", "7"], "expects 'device' to be from 0 to 1, got 7"),
    ],
)
def test_wrong_arguments_of_the_command_are_errors(driver, capsys, arguments, message):
    shapes = ["tune", arguments[0], *COMMAND[3:]] if arguments[0][0].isdigit() else [*COMMAND, *arguments]
    with driver.idle():
        assert main(shapes) == 1
    assert message in capsys.readouterr().err


def test_caches_with_scales_and_latent_caches_have_examples(driver):
    shape = synthetic.Shape(2, 40, 1)
    config = kvcache.KVCacheQuantizationConfig("f32", 32)
    latent = KVCacheParams("bf16", 1, 64, page_size=16, total_num_layers=1, is_mla=True)
    scaled = KVCacheParams("i8", 1, 64, page_size=16, total_num_layers=1, kvcache_quant_config=config)
    # The bytes of the scales of all pages, of outputs of 32 elements, and of the scales of query heads.
    cases = ((scaled, {}, 1536), (latent, {"value_dim": 32}, 512), (PARAMS, {"dtype": "f8E4M3FN"}, 16))
    for params, options, size in cases:
        operation = kvcache.ops.attention(params, 4, target=f"cuda:{CHIP}", **options)
        with driver.idle():
            synthetic.SyntheticExample(operation, shape, 0)(operation)
        calls = driver.calls()
        assert f"cuMemAlloc({size})" in calls
        assert "cuModuleGetFunction(PTX, attention_kernel)" in calls


# --- The timer ------------------------------------------------------------------------


def test_cache_is_cleared_before_each_call(driver):
    timer = GPUTimer(0, l2_bytes=1000)
    driver.calls()
    times = timer.measure(lambda: None, 3, 10)
    assert len(times) == 3 and all(each >= 0 for each in times)
    assert [call for call in driver.calls() if "Memset" in call] == ["cuMemsetD8Async(0, 4000, null)"] * 3
    timer.close()
    timer.close()


def test_kernel_without_an_end_is_an_error(driver):
    timer = GPUTimer(0, l2_bytes=1000)
    start = time.monotonic()
    with driver.failing("cuEventQuery", NOT_READY), pytest.raises(HungError, match="has not ended within 0.05 s"):
        timer.measure(lambda: None, 1, 0.05)
    assert time.monotonic() - start < 10
    driver.calls()
    timer.close()  # would wait for the kernel
    assert not driver.calls()


@pytest.mark.parametrize("function", ["cuEventCreate", "cuEventRecord", "cuEventQuery", "cuEventElapsedTime"])
def test_error_of_the_driver_is_raised(driver, function):
    timer = GPUTimer(0, l2_bytes=0)
    with driver.failing(function, ILLEGAL_ADDRESS), pytest.raises(kvcache.CheckError, match=f"{function}: CUDA error 700"):
        timer.measure(lambda: None, 1, 10)


@pytest.mark.long
@pytest.mark.parametrize("elapsed", ["nan", "-1", "0"])
def test_gpu_that_lies_is_an_error(driver, folder, elapsed):
    operation = kvcache.ops.attention(PARAMS, 4, target=f"cuda:{CHIP}")
    example = synthetic.SyntheticExample(operation, synthetic.Shape(1, 20, 1), 0)
    with driver.idle(), driver.elapsed(elapsed), pytest.raises(TuningError, match="to be positive numbers"):
        kvcache.tune(operation, example)
    assert not (folder / "tuning").exists()


def test_models_are_those_of_the_driver(driver):
    first, second = gpu_timer.find_models()
    assert first == second and (first.gpu, first.chip, first.multiprocessors) == ("stand-in", CHIP, 4)
    with pytest.raises(kvcache.TargetError, match="expects 'device' to be from 0 to 1, got 2"):
        gpu_timer.find_model(2)


def test_driver_has_the_version_of_the_kernel_module(driver, monkeypatch, tmp_path):
    (tmp_path / "version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23\n")
    monkeypatch.setattr(gpu_timer, "_VERSION", tmp_path / "version")
    assert gpu_timer.find_model(0).driver == "580.95.05"
    (tmp_path / "version").write_text("\n")
    assert gpu_timer.find_model(0).driver == "CUDA 13.0"


def test_library_that_is_no_driver_is_an_error(monkeypatch):
    for library in ("libnothing.so", "libm.so.6"):
        monkeypatch.setenv("KVCACHE_CUDA_DRIVER", library)
        with pytest.raises(kvcache.TargetError, match="no CUDA driver: .*(libnothing|cuDriverGetVersion)"):
            gpu_timer._driver.__wrapped__()


def test_machine_without_a_driver_has_no_models(monkeypatch):
    def fail():
        raise kvcache.TargetError("no CUDA driver")

    monkeypatch.setattr(gpu_timer.cuda, "list_chips", fail)
    assert gpu_timer.find_models() == ()

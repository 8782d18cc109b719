"""Tuning files: how they are found, read, written by several processes, and used by the compiler."""

import json
import multiprocessing
import os
import re

import pytest
from places import EXAMPLES

import kvcache
from kvcache import TuningError
from kvcache.compilation import tuning_files
from kvcache.devices.gpu_timer import Model
from kvcache.tuning import candidates

CHIP = "sm_90a"
MODEL = Model("NVIDIA H200", CHIP, "580.95.05", 132, 60 << 20, 228 << 10)
RIGHT = {"format": "kvcache-tuning", "version": 1, "gpu": MODEL.gpu, "chip": CHIP, "driver": MODEL.driver, "shapes": {}}
PARAMS = kvcache.KVCacheParams("bf16", 8, 128, page_size=16, total_num_layers=1)
NAME = "NVIDIA-H200_sm_90a_580.95.05.json"


@pytest.fixture(autouse=True)
def machine(monkeypatch, tmp_path):
    """A machine with one H200, whose folder of compiled code is empty."""
    monkeypatch.setenv("KVCACHE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KVCACHE_TUNING", raising=False)
    monkeypatch.setattr(tuning_files, "find_models", lambda: (MODEL,))


def write(path, **fields):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(RIGHT | fields))
    return path


def make_entry(**config):
    return {"config": config, "failed": {}}


def make_tuned(path, operation, **config):
    """A file with a config for an operation."""
    return write(path, shapes={candidates.plan(operation, CHIP).shape: make_entry(**config)})


# --- Finding --------------------------------------------------------------------------


def test_file_of_the_model_is_found(tmp_path, monkeypatch):
    assert tuning_files.find(CHIP) is None
    file = write(tmp_path / "cache/tuning" / NAME)
    assert tuning_files.find(CHIP) == file
    assert tuning_files.find("sm_100a") is tuning_files.find(f"{CHIP},sm_100a") is tuning_files.find("") is None
    monkeypatch.setenv("KVCACHE_TUNING", "off")
    assert tuning_files.find(CHIP) is None


def test_driver_is_not_asked_without_a_folder_of_files(monkeypatch):
    monkeypatch.setattr(tuning_files, "find_models", lambda: pytest.fail("asks the driver"))
    assert tuning_files.find(CHIP) is None


def test_variable_names_a_file_or_a_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("KVCACHE_TUNING", str(tmp_path))
    assert tuning_files.find(CHIP) is None
    file = write(tmp_path / NAME)
    assert tuning_files.find(CHIP) == file
    own = write(tmp_path / "own.json")
    monkeypatch.setenv("KVCACHE_TUNING", str(own))
    assert tuning_files.find(CHIP) == own


def test_machine_without_a_gpu_uses_only_a_named_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tuning_files, "find_models", lambda: ())
    file = write(tmp_path / "cache/tuning" / NAME)
    assert tuning_files.find(CHIP) is None
    monkeypatch.setenv("KVCACHE_TUNING", str(file))
    assert tuning_files.find(CHIP) == file
    with pytest.warns(RuntimeWarning, match="is for chip 'sm_90a', and kernels are for 'sm_80'"):
        assert tuning_files.find("sm_80") is None


def test_gpus_of_two_models_have_no_file(tmp_path, monkeypatch):
    write(tmp_path / "cache/tuning" / NAME)
    other = Model("NVIDIA H100", CHIP, "580.95.05", 132, 50 << 20, 228 << 10)
    monkeypatch.setattr(tuning_files, "find_models", lambda: (MODEL, other))
    assert tuning_files.find(CHIP) is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"version": 2}, "has version 2, and kvcache .* reads version 1"),
        ({"format": "x"}, "is no tuning file"),
        ({"gpu": "NVIDIA H100"}, "is for gpu 'NVIDIA H100', and this GPU has 'NVIDIA H200'"),
        ({"driver": "570.1"}, "is for driver '570.1', and this GPU has '580.95.05'"),
        ({"driver": None}, "is damaged: it has no 'driver'"),
        ({"shapes": []}, "is damaged: expects 'shapes' with a 'config' each"),
        ({"shapes": {"attention": {}}}, "is damaged: expects 'shapes' with a 'config' each"),
    ],
)
def test_file_that_can_not_be_used_is_a_warning(tmp_path, fields, message):
    write(tmp_path / "cache/tuning" / NAME, **fields)
    with pytest.warns(RuntimeWarning, match=f"no tuning is used: .*{message}"):
        assert tuning_files.find(CHIP) is None


def test_missing_or_half_written_file_is_a_warning(tmp_path, monkeypatch):
    file = tmp_path / "own.json"
    monkeypatch.setenv("KVCACHE_TUNING", str(file))
    with pytest.warns(RuntimeWarning, match="no tuning is used: .*No such file"):
        assert tuning_files.find(CHIP) is None
    file.write_text(json.dumps(RIGHT)[:50])
    with pytest.warns(RuntimeWarning, match="no tuning is used: tuning file .* is damaged"):
        assert tuning_files.find(CHIP) is None


# --- Writing --------------------------------------------------------------------------


def merge_many(path, first):
    for number in range(first, first + 20):
        tuning_files.merge(path, MODEL, f"attention {number}", make_entry(stages=2))


def test_two_processes_lose_no_entry(tmp_path):
    path = tmp_path / "tuning" / NAME
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=merge_many, args=(path, first)) for first in (0, 20, 40)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert len(tuning_files.read(path).shapes) == 60
    assert os.listdir(path.parent) == [NAME]


def test_entry_replaces_an_earlier_one_and_keeps_its_failures(tmp_path):
    path = tmp_path / NAME
    tuning_files.merge(path, MODEL, "a", make_entry(stages=2) | {"failed": {"x": "hangs"}})
    tuning_files.merge(path, MODEL, "a", make_entry(stages=3) | {"failed": {"y": "fails"}})
    entry = tuning_files.read(path).shapes["a"]
    assert entry["config"] == {"stages": 3} and entry["failed"] == {"x": "hangs", "y": "fails"}


def test_interrupted_write_leaves_the_file(tmp_path, monkeypatch):
    path = tmp_path / NAME
    tuning_files.merge(path, MODEL, "a", make_entry(stages=2))
    before = path.read_bytes()

    def fail(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        tuning_files.merge(path, MODEL, "b", make_entry(stages=2))
    assert path.read_bytes() == before and os.listdir(tmp_path) == [NAME]


def test_merge_changes_no_file_of_another_model(tmp_path):
    path = write(tmp_path / "own.json", driver="570.1")
    before = path.read_bytes()
    with pytest.raises(TuningError, match="is for driver '570.1'"):
        tuning_files.merge(path, MODEL, "a", make_entry(stages=2))
    assert path.read_bytes() == before


# --- Use ------------------------------------------------------------------------------


@pytest.mark.long
def test_compile_uses_the_config_of_a_file(tmp_path):
    operation = kvcache.ops.attention(PARAMS, 32)
    file = make_tuned(tmp_path / "own.json", operation, stages=3)
    tuned, planned, set_ = (
        module.kernels["attention_kernel"].ptx
        for module in (
            kvcache.compile(operation.source, CHIP, tuning=file),
            kvcache.compile(operation.source, CHIP),
            operation.with_config(kvcache.AttentionConfig(stages=3)).compile(CHIP),
        )
    )
    assert re.sub("//.*", "", tuned) == re.sub("//.*", "", set_) != planned
    checked = kvcache.compile(operation.source, CHIP, tuning=file, bounds_checks=True)
    assert checked.kernels["attention_kernel"].ptx != kvcache.compile(operation.source, CHIP, bounds_checks=True).kernels["attention_kernel"].ptx


def test_stored_code_depends_on_the_contents_of_the_file(tmp_path):
    operation = kvcache.ops.attention(PARAMS, 32)
    file = make_tuned(tmp_path / "own.json", operation, stages=3)

    def compile_cached():
        return kvcache.compile(operation.source, CHIP, tuning=file, cached=True).kernels["attention_kernel"].ptx

    first = compile_cached()
    make_tuned(file, operation, schedule="pipelined")
    second = compile_cached()
    make_tuned(file, operation, stages=3)
    assert compile_cached() == first != second


def test_file_that_is_replaced_meanwhile_stores_nothing(tmp_path, monkeypatch):
    operation = kvcache.ops.attention(PARAMS, 32)
    file = make_tuned(tmp_path / "own.json", operation, stages=3)
    digests = iter(["before", "after"])
    monkeypatch.setattr(tuning_files, "describe", lambda path: next(digests))
    kvcache.compile(operation.source, CHIP, tuning=file, cached=True)
    assert not (tmp_path / "cache").exists()


def test_config_that_is_refused_is_a_warning(tmp_path):
    operation = kvcache.ops.attention(PARAMS, 32)
    file = make_tuned(tmp_path / "own.json", operation, keys=128, stages=8)
    with pytest.warns(kvcache.CompileWarning, match="does not use the config of tuning file .*shared memory"):
        (kernel,) = kvcache.compile(operation.source, CHIP, tuning=file).kernels.values()
    assert kernel.ptx == kvcache.compile(operation.source, CHIP).kernels[kernel.name].ptx


def test_wrong_arguments_are_rejected(tmp_path):
    file = write(tmp_path / "own.json")
    source = (EXAMPLES / "attention_op.mlir").read_text()
    with pytest.raises(kvcache.CompileError, match="expects one chip with 'tuning', got 2"):
        kvcache.compile(source, [CHIP, "sm_100a"], tuning=file)
    with pytest.raises(kvcache.CompileError, match="is for chip 'sm_90a', and kernels are for 'sm_80'"):
        kvcache.compile(source, "sm_80", tuning=file)
    with pytest.raises(ValueError, match="'tuning' has no meaning for target 'cpu', only for 'cuda'"):
        kvcache.jit(source, tuning=file)
    with pytest.raises(TypeError, match="tuning"):
        kvcache.compile(source, CHIP, tuning=3)
    with pytest.raises(OSError, match="No such file"):
        kvcache.compile(source, CHIP, tuning=tmp_path / "missing.json")
    braces = write(tmp_path / "a{b.json")
    with pytest.raises(ValueError, match="expects 'tuning' without braces"):
        kvcache.jit(source, f"cuda:{CHIP}", tuning=braces)
    assert kvcache.jit(source, f"cuda:{CHIP}", tuning=file).functions

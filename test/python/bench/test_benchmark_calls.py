"""The benchmark of calls: it measures what is installed, and says what is the least."""

import calls
import standin


def test_calls_are_measured():
    rows = calls.measure(runs=2, number=20)
    times = {library: rest for library, *rest in rows}
    assert {"numpy", "tvm_ffi", "ml_dtypes"} <= times.keys()
    assert all(call > 0 for call, _, _ in times.values())
    # What checks less and copies nothing is faster, with a wide margin for noise.
    assert times["tvm_ffi"][1] < times["ml_dtypes"][0]
    report = calls.render(rows).splitlines()
    assert len(report) == 2 + len(rows)
    assert "not taken" in next(line for line in report if "ml_dtypes" in line)


def test_launches_are_measured():
    """On the driver of the tests, which then does nothing."""
    driver = standin.get()
    driver.reset()
    ((name, *times),) = calls.measure_launches(driver._library, runs=2, number=20)
    assert name == "tvm_ffi, a launch" and all(time > 0 for time in times)
    assert times[1] > times[2]  # a launch, and a function that does nothing
    assert not [line for line in driver.calls() if line.startswith("cuLaunchKernel")]
    driver.reset()


def test_the_least_time_counts():
    waits = iter([0.0, 0.0])
    assert calls.find_least(lambda: next(waits, None), runs=2, number=1) < 1e4

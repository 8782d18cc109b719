# The package alone, from a wheel of scripts/wheel:
#   scripts/wheel --small && docker build -t kvcache . && docker run --rm kvcache
# On Debian 13, or ubuntu:24.04:
#   scripts/wheel --stable-abi && docker build -t kvcache --build-arg BASE=debian:13-slim --build-arg PYTHON=cp312 .
ARG BASE=debian:12-slim
FROM ${BASE}
ARG PYTHON=cp311
RUN apt-get update && apt-get install -y --no-install-recommends python3-venv && rm -rf /var/lib/apt/lists/*
COPY build/dist/kvcache-*-${PYTHON}-*.whl /tmp/wheels/
# Without pip, which `python -m ensurepip` brings back, and the tests of NumPy.
RUN python3 -m venv /opt/kvcache && /opt/kvcache/bin/pip install --no-cache-dir /tmp/wheels/*.whl && \
    /opt/kvcache/bin/pip uninstall --yes pip setuptools && \
    rm -r /tmp/wheels /opt/kvcache/lib/python3*/site-packages/numpy/*/tests
ENV PATH=/opt/kvcache/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WORKDIR /work
CMD ["python", "-m", "kvcache", "demo"]

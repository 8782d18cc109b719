# The package alone, from the wheel of scripts/wheel:
#   scripts/wheel && docker build -t kvcache . && docker run --rm kvcache
FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends python3-venv && rm -rf /var/lib/apt/lists/*
COPY build/dist/*.whl /tmp/wheels/
RUN python3 -m venv /opt/kvcache && /opt/kvcache/bin/pip install --no-cache-dir /tmp/wheels/*.whl && rm -r /tmp/wheels
ENV PATH=/opt/kvcache/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WORKDIR /work
CMD ["python", "-m", "kvcache", "demo"]

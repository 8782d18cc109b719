"""The lit tests of the emulator: the settings of the compiler's tests, for this folder."""

import os

lit_config.load_config(config, os.path.join(config.kvcache_source_dir, "test", "lit.cfg.py"))
config.name = "emulator"
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.kvcache_build_dir, "emulator", "test")
config.substitutions.append(("%add_launches", f"{config.python} {os.path.dirname(__file__)}/add_launches.py"))

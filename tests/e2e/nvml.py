"""Reads one GPU through NVIDIA's own Python bindings, and prints what they say as JSON."""

import ctypes
import json

import pynvml as nvml

nvml.nvmlInit()
gpu = nvml.nvmlDeviceGetHandleByIndex(3)

sram = nvml.c_nvmlEccSramErrorStatus_v1_t()
sram.version = nvml.nvmlEccSramErrorStatus_v1
nvml.nvmlDeviceGetSramEccErrorStatus(gpu, ctypes.byref(sram))

fabric = nvml.c_nvmlGpuFabricInfo_v2_t()
fabric.version = nvml.nvmlGpuFabricInfo_v2
nvml.nvmlDeviceGetGpuFabricInfoV(gpu, ctypes.byref(fabric))

wanted = [
    nvml.NVML_FI_DEV_MEMORY_TEMP,
    nvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION,
]
fields = nvml.nvmlDeviceGetFieldValues(gpu, wanted)
banks = nvml.nvmlDeviceGetRowRemapperHistogram(gpu)

print(
    json.dumps(
        {
            "driver": nvml.nvmlSystemGetDriverVersion(),
            "gpus": nvml.nvmlDeviceGetCount(),
            "name": nvml.nvmlDeviceGetName(gpu),
            "serial": nvml.nvmlDeviceGetSerial(gpu),
            "pci": nvml.nvmlDeviceGetPciInfo(gpu).busId,
            "rows": list(nvml.nvmlDeviceGetRemappedRows(gpu)),
            "banks": [banks.max, banks.high, banks.partial, banks.low, banks.none],
            "uncorrected": nvml.nvmlDeviceGetMemoryErrorCounter(
                gpu,
                nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
                nvml.NVML_VOLATILE_ECC,
                nvml.NVML_MEMORY_LOCATION_DRAM,
            ),
            "sram_threshold": sram.bThresholdExceeded,
            "fabric": [fabric.state, fabric.status, fabric.healthMask],
            "fields": [[field.nvmlReturn, field.value.uiVal] for field in fields],
            "margin": nvml.nvmlDeviceGetMarginTemperature(gpu),
            "held_by": nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu),
            "processes": [
                [process.pid, process.usedGpuMemory]
                for process in nvml.nvmlDeviceGetComputeRunningProcesses(gpu)
            ],
        }
    )
)

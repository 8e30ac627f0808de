//! NVMe controllers: sysfs, and the health log through the admin ioctl.

use std::os::fd::{AsRawFd, OwnedFd};

use plimsoll_judge::Data;
use plimsoll_model::{Absence, Absent, Backing, LinkReadings, NvmeController, Reading, SmartLog};
use rustix::fs::{FileType, OFlags, fstat};

use crate::{Machine, parse};

const CONTROLLERS_MAX: usize = 512;

/// All controllers, without their health logs, which are asked for one by one.
pub(super) fn controllers(machine: &Machine, data: &Data) -> Result<Vec<NvmeController>, Absent> {
    let is_controller = |name: &String| {
        name.strip_prefix("nvme").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let names: Vec<String> = machine.list("/sys/class/nvme")?.into_iter().filter(is_controller).collect();
    if names.len() > CONTROLLERS_MAX {
        return Err(Absent::new(Absence::TooLarge, format!("more than {CONTROLLERS_MAX} controllers")));
    }
    Ok(names.into_iter().map(|name| controller(machine, data, name)).collect())
}

fn controller(machine: &Machine, data: &Data, name: String) -> NvmeController {
    let base = format!("/sys/class/nvme/{name}");
    let line = |file: &str| machine.read(&format!("{base}/{file}"), parse::one_line);
    let model = line("model");
    let pci = |file: &str| format!("{base}/device/{file}");
    let backing = machine.reading(format!("{base}/model"), backing_of(machine, data, &name));
    let smart = if backing.ok() == Some(&Backing::Network) {
        Absent::new(Absence::NotSupported, "a network block device's wear is its provider's matter")
    } else {
        Absent::new(Absence::NotAsked, "its health log was not asked for")
    };
    let smart = machine.reading(format!("/dev/{name}"), Err(smart));
    NvmeController {
        address: machine.read(&format!("{base}/address"), parse::one_word),
        state: line("state"),
        link: LinkReadings {
            speed: machine.read(&pci("current_link_speed"), parse::link_speed),
            speed_max: machine.read(&pci("max_link_speed"), parse::link_speed),
            width: machine.read(&pci("current_link_width"), lanes),
            width_max: machine.read(&pci("max_link_width"), lanes),
            port_speed_max: machine.read(&pci("../max_link_speed"), parse::link_speed),
            port_width_max: machine.read(&pci("../max_link_width"), lanes),
        },
        smart,
        model,
        backing,
        name,
    }
}

/// Where a controller's blocks are, by its transport and model.
pub(super) fn backing_of(machine: &Machine, data: &Data, controller: &str) -> Result<Backing, Absent> {
    let base = format!("/sys/class/nvme/{controller}");
    let model = machine.text(&format!("{base}/model")).and_then(|text| parse::one_line(&text))?;
    // Kernels before 4.5 know no other transport and have no such file.
    let transport = machine.text(&format!("{base}/transport")).unwrap_or_default();
    if !matches!(transport.trim(), "" | "pcie") {
        return Ok(Backing::Network);
    }
    // A model that no list names is a drive that somebody built in.
    Ok(data.backing(&model).unwrap_or(Backing::Local))
}

fn lanes(text: &str) -> Result<u32, Absent> {
    match parse::one_number(text)? {
        // Virtual controllers have these files and no link.
        0 | 255 => Err(Absent::new(Absence::NotSupported, "the device does not tell")),
        lanes => Ok(lanes),
    }
}

/// A drive's health log. A tree holds the page itself in `answers/NAME-smart-log`.
///
/// A controller that is being reset answers only when that is over, so each drive is asked in a child of its own.
pub fn health(machine: &Machine, name: &str) -> Reading<SmartLog> {
    machine.step(&format!("the health log of {name}"));
    if machine.is_live() {
        let path = format!("/dev/{name}");
        let result = machine.open(path.as_bytes(), OFlags::RDONLY | OFlags::NONBLOCK).and_then(|device| {
            let stat = fstat(&device).map_err(crate::machine::absent)?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::CharacterDevice {
                return Err(parse::malformed("not a device"));
            }
            smart_page(&device)
        });
        machine.reading(path, result.and_then(|page| parse::smart_log(&page)))
    } else {
        let path = format!("/answers/{name}-smart-log");
        let page = machine.bytes(&path, parse::SMART_LOG_BYTES);
        machine.reading(path, page.and_then(|page| parse::smart_log(&page)))
    }
}

/// `struct nvme_admin_cmd` of linux/nvme_ioctl.h.
#[repr(C)]
#[derive(Default)]
struct AdminCommand {
    opcode: u8,
    flags: u8,
    rsvd1: u16,
    nsid: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    addr: u64,
    metadata_len: u32,
    data_len: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    result: u32,
}

const _: () = assert!(size_of::<AdminCommand>() == 72);

/// `_IOWR('N', 0x41, struct nvme_admin_cmd)`.
const NVME_IOCTL_ADMIN_CMD: libc::Ioctl = 0xC048_4E41_u32 as libc::Ioctl;
const GET_LOG_PAGE: u8 = 0x02;
const LOG_SMART: u32 = 0x02;
const ALL_NAMESPACES: u32 = 0xFFFF_FFFF;

#[expect(unsafe_code, reason = "the NVMe admin ioctl has no safe wrapper")]
fn smart_page(device: &OwnedFd) -> Result<Vec<u8>, Absent> {
    let mut page = vec![0_u8; parse::SMART_LOG_BYTES];
    let dwords = u32::try_from(parse::SMART_LOG_BYTES / 4).unwrap_or_default();
    // No time limit of ours: when one runs out the kernel resets the controller, and a check must change nothing.
    let mut command = AdminCommand {
        opcode: GET_LOG_PAGE,
        nsid: ALL_NAMESPACES,
        addr: page.as_mut_ptr().expose_provenance() as u64,
        data_len: dwords * 4,
        cdw10: (dwords - 1) << 16 | LOG_SMART,
        ..AdminCommand::default()
    };
    // SAFETY: the descriptor is open; `command` has the layout that the ioctl's number encodes (its size is asserted
    // above); `addr` points to `page`, of `data_len` bytes, which lives and is not touched until the call returns.
    let status = unsafe { libc::ioctl(device.as_raw_fd(), NVME_IOCTL_ADMIN_CMD, &raw mut command) };
    match status {
        0 => Ok(page),
        ..0 => {
            let error = std::io::Error::last_os_error();
            let kind = match error.kind() {
                std::io::ErrorKind::PermissionDenied => Absence::PermissionDenied,
                _ => Absence::Unreadable,
            };
            Err(Absent::new(kind, format!("SMART log: {error}")))
        }
        // Invalid opcode, field or log page: the drive has no such log, as many virtual ones.
        1.. if matches!(status & 0x7ff, 0x01 | 0x02 | 0x109) => {
            Err(Absent::new(Absence::NotSupported, "the drive has no SMART log"))
        }
        1.. => Err(Absent::new(
            Absence::Unreadable,
            format!("SMART log: the drive answered with status {status:#x}"),
        )),
    }
}

//! The stack of a thread that sleeps in a system call, as another thread finds it.
//!
//! # Why it is done in this way
//!
//! A report of a stall should name the line of the program that blocks. The thread itself cannot tell: while
//! it sleeps it runs nothing, and afterwards the frames are gone.
//!
//! - A signal whose handler walks the stack would be exact. But the system call that it interrupts may return
//!   `EINTR`: `poll`, `epoll_wait`, `nanosleep` and others do so even with `SA_RESTART`, and a program that
//!   never had a signal may not expect that. A report must not change what a program does.
//! - `ptrace` does not work within a process, and a debugger is no part of a program.
//! - Linux tells in `/proc/self/task/N/syscall` where a sleeping thread has its stack pointer and its
//!   instruction pointer. Nothing happens to the thread for that. Its memory is the process's own.
//!
//! So this walks the stack from these two, by the tables that the unwinder of panics uses (`.eh_frame`). All
//! is read through files: memory by `/proc/self/mem`, where an address that is unmapped meanwhile is an error
//! and no fault, and the tables of each module where `/proc/self/maps` has it, without a lock of the loader.
//!
//! The file has no other registers. A function whose frame is found by its frame pointer (`rbp`) needs one:
//! many of the standard library. Then the instructions that make the frame tell how large it is. If they are
//! other ones than usual, the frame is looked for on the stack, by the address to which the function returns:
//! in front of that address is a call of this function. (That does not find a function to which another one
//! has jumped, or which is called through a pointer.)
//!
//! The thread may wake up at any time. So the system call is read again at the end, and the caller checks
//! that the thread is in the same poll: otherwise the stack is not used.
//!
//! # What it costs
//!
//! Nothing until a stall is reported; then the reporting thread needs some milliseconds, and for the first
//! report a tenth of a second or more, in which it loads the debug information. The thread that blocks and
//! the deputy do nothing for it.
//!
//! # What it does not find
//!
//! A stack ends where a frame is found in neither way: no line is better than a wrong one. A thread that
//! computes has no registers in that file, also if it waits for a core. The line is known on
//! x86-64 Linux, if `/proc` is mounted and lets a process read its own memory (not in a program that has
//! given up `PR_SET_DUMPABLE`).

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
pub(super) use walk::calls;

/// Returns none: the system does not tell.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(miri))))]
pub(super) fn calls(_: u32) -> Option<Vec<usize>> {
    None
}

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
mod walk {
    use std::fs::{self, File};
    use std::os::unix::fs::FileExt;
    use std::str;

    use gimli::{
        BaseAddresses, CfaRule, EhFrame, EhFrameHdr, LittleEndian, Pointer, Register, RegisterRule,
        UnwindContext, UnwindSection,
    };

    use crate::stack::MOST_CALLS;

    /// The numbers of registers in the tables.
    const RBP: usize = 6;
    const RSP: usize = 7;
    const RETURN: usize = 16;
    /// How much of a stack is looked at. Debug builds have large frames.
    const WINDOW: usize = 512 << 10;
    /// How far up the frame of a function is looked for.
    const LARGEST_FRAME: u64 = 64 << 10;
    /// How a function with a frame pointer finds its frame, once that is made.
    const BELOW_RECORD: CfaRule<usize> = CfaRule::RegisterAndOffset { register: Register(6), offset: 16 };
    const LOAD: u32 = 1;
    const EH_FRAME: u32 = 0x6474_e550;

    /// Returns the addresses to which the calls return on the stack of a thread of this process that sleeps
    /// in a system call, the innermost first: those in the module of this function. Calls of other modules,
    /// such as the C library, are left out. `None` if the thread runs, or has woken up meanwhile.
    pub(in crate::stack) fn calls(thread: u32) -> Option<Vec<usize>> {
        let file = format!("/proc/self/task/{thread}/syscall");
        let at = fs::read_to_string(&file).ok()?;
        let mut fields = at.split_whitespace().rev();
        let mut number = || u64::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok();
        let (pc, sp) = (number()?, number()?);
        let memory = OwnMemory::open(sp)?;
        let calls = Walk::new(&memory, pc, sp).collect();
        (fs::read_to_string(&file).ok()? == at).then_some(calls)
    }

    /// A line of `/proc/self/maps`. The path is bytes: a file may have any name, and the line has it as it is.
    struct Mapping<'a> {
        from: u64,
        to: u64,
        permissions: &'a [u8],
        offset: u64,
        path: &'a [u8],
    }

    impl<'a> Mapping<'a> {
        /// Parses "from-to permissions offset device inode path". There is a path only if a file is mapped.
        fn parse(line: &'a [u8]) -> Option<Self> {
            let hex = |text| u64::from_str_radix(str::from_utf8(text).ok()?, 16).ok();
            let mut fields = line.splitn(6, |byte| *byte == b' ');
            let mut range = fields.next()?.split(|byte| *byte == b'-');
            let (from, to) = (hex(range.next()?)?, hex(range.next()?)?);
            let (permissions, offset) = (fields.next()?, hex(fields.next()?)?);
            // It is behind as many spaces as make a column.
            let path = fields.nth(2).unwrap_or_default().trim_ascii_start();
            Some(Self { from, to, permissions, offset, path })
        }
    }

    /// A part of the address space that has code.
    struct Code {
        from: u64,
        to: u64,
        /// Where the module begins, whose first bytes are the headers of its file.
        module: u64,
    }

    /// The memory of the process.
    struct OwnMemory {
        file: File,
        code: Vec<Code>,
        /// The upper end of a stack, from its stack pointer on.
        stack: (u64, Vec<u8>),
    }

    impl OwnMemory {
        /// Opens the memory, finds the segments that have code, and reads the stack from `sp` on. Returns
        /// `None` if the system does not let the process read its own memory.
        fn open(sp: u64) -> Option<Self> {
            let file = File::open("/proc/self/mem").ok()?;
            let (mut code, mut module) = (Vec::new(), (0, &[][..]));
            let maps = fs::read("/proc/self/maps").ok()?;
            for mapping in maps.split(|byte| *byte == b'\n').filter_map(Mapping::parse) {
                let Mapping { from, to, permissions, offset, path } = mapping;
                if offset == 0 {
                    module = (from, path);
                }
                if permissions.contains(&b'x') && !path.is_empty() && module.1 == path {
                    code.push(Code { from, to, module: module.0 });
                }
            }
            let mut memory = Self { file, code, stack: (sp, Vec::new()) };
            memory.stack.1 = memory.read(sp, WINDOW);
            Some(memory)
        }

        /// Reads from an address on, as far as there is memory.
        fn read(&self, at: u64, most: usize) -> Vec<u8> {
            let mut bytes = vec![0; most];
            let read = self.file.read_at(&mut bytes, at).unwrap_or(0);
            bytes.truncate(read);
            bytes
        }

        fn code_at(&self, address: u64) -> Option<&Code> {
            self.code.iter().find(|code| (code.from..code.to).contains(&address))
        }

        /// Returns the word on the stack.
        fn word(&self, at: u64) -> Option<u64> {
            let (from, bytes) = &self.stack;
            let start = usize::try_from(at.checked_sub(*from)?).ok()?;
            Some(u64::from_le_bytes(bytes.get(start..start + 8)?.try_into().ok()?))
        }

        /// Returns the function whose call returns to this address, as the instruction before it tells: 0 if
        /// that calls through a pointer. `None` if there is no call.
        fn callee(&self, address: u64) -> Option<u64> {
            self.code_at(address)?;
            let before = self.read(address.wrapping_sub(7), 7);
            let relative = |bytes: &[u8]| {
                let by = i32::from_le_bytes(bytes.try_into().unwrap_or_default());
                address.wrapping_add_signed(i64::from(by))
            };
            match *before {
                [_, _, 0xe8, ..] => Some(relative(&before[3..])),
                // Through a word of the module, which the loader has filled in.
                [_, 0xff, 0x15, ..] => {
                    self.read(relative(&before[3..]), 8).try_into().ok().map(u64::from_le_bytes)
                }
                // Through a register, or a word that one points to.
                [.., 0xff, mode] | [.., 0xff, mode, _] | [_, 0xff, mode, ..] | [0xff, mode, ..]
                    if mode & 0x38 == 0x10 =>
                {
                    Some(0)
                }
                _ => None,
            }
        }

        /// Returns how far below `rbp` the stack of a function ends, by the instructions after the one that
        /// sets `rbp`: they save other registers, and make room. `None` if they save less than `saved`.
        fn frame_below(&self, at: u64, saved: usize) -> Option<u64> {
            let code = self.read(at, 64);
            let (mut code, mut pushed, mut room) = (&*code, 0_usize, 0);
            loop {
                code = match code {
                    // push
                    [0x50..=0x57, rest @ ..] | [0x41, 0x50..=0x57, rest @ ..] if room == 0 => {
                        pushed += 1;
                        rest
                    }
                    // sub rsp, by a byte or four; add rsp, -128.
                    [0x48, 0x83, 0xec, by @ ..0x80, rest @ ..] | [0x48, 0x83, 0xc4, by @ 0x80, rest @ ..] => {
                        room += u64::from(*by);
                        rest
                    }
                    [0x48, 0x81, 0xec, a, b, c, d, rest @ ..] => {
                        room += u64::from(u32::from_le_bytes([*a, *b, *c, *d]));
                        rest
                    }
                    // mov qword ptr [rsp], 0: touches each page of a large frame.
                    [0x48, 0xc7, 0x04, 0x24, 0, 0, 0, 0, rest @ ..] => rest,
                    _ => break,
                };
            }
            (pushed >= saved).then_some(8 * pushed as u64 + room)
        }
    }

    /// The tables of a module.
    struct Tables {
        module: u64,
        bases: BaseAddresses,
        index: Vec<u8>,
        entries: Vec<u8>,
    }

    impl Tables {
        fn read(memory: &OwnMemory, module: u64) -> Option<Self> {
            let header = memory.read(module, 64);
            let half = |bytes: &[u8], at| {
                Some(u64::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
            };
            let long = |bytes: &[u8], at| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
            if !header.starts_with(b"\x7fELF\x02\x01") {
                return None;
            }
            let (at, size, number) = (long(&header, 32)?, half(&header, 54)?, half(&header, 56)?);
            // A file of this type is not moved.
            let moved = if half(&header, 16)? == 2 { 0 } else { module };
            let segments = memory.read(module + at, (size * number) as usize);
            let segments = || segments.chunks_exact((size as usize).max(56));
            let kind = |segment: &[u8]| u32::from_le_bytes(segment[..4].try_into().unwrap());
            let index = segments().find(|segment| kind(segment) == EH_FRAME)?;
            let index_at = moved + long(index, 16)?;
            let index = memory.read(index_at, long(index, 40)? as usize);
            let bases = BaseAddresses::default().set_eh_frame_hdr(index_at);
            let Pointer::Direct(entries_at) =
                EhFrameHdr::new(&index, LittleEndian).parse(&bases, 8).ok()?.eh_frame_ptr()
            else {
                return None;
            };
            // Where they end is not said: before the end of their segment.
            let ends = |segment: &[u8]| {
                let from = moved + long(segment, 16)?;
                let to = from + long(segment, 32)?;
                (kind(segment) == LOAD && (from..to).contains(&entries_at)).then_some(to)
            };
            let entries = memory.read(entries_at, (segments().find_map(ends)? - entries_at) as usize);
            Some(Self { module, bases: bases.set_eh_frame(entries_at), index, entries })
        }
    }

    /// Walks a stack.
    struct Walk<'a> {
        memory: &'a OwnMemory,
        tables: Vec<Tables>,
        /// The registers, as far as they are known.
        registers: [Option<u64>; RETURN + 1],
        left: usize,
        own: u64,
        is_first: bool,
    }

    impl<'a> Walk<'a> {
        fn new(memory: &'a OwnMemory, pc: u64, sp: u64) -> Self {
            let mut registers = [None; RETURN + 1];
            (registers[RSP], registers[RETURN]) = (Some(sp), Some(pc));
            let own = memory.code_at(calls as fn(_) -> _ as usize as u64).map_or(0, |code| code.module);
            Self { memory, tables: Vec::new(), registers, left: MOST_CALLS, own, is_first: true }
        }

        /// Goes to the caller. Afterwards, `RETURN` is the address in the caller.
        fn step(&mut self) -> Option<()> {
            let pc = self.registers[RETURN]?;
            // The call is before the address; a system call is where it is.
            let within = if std::mem::take(&mut self.is_first) { pc } else { pc.checked_sub(1)? };
            let module = self.memory.code_at(within)?.module;
            if !self.tables.iter().any(|tables| tables.module == module) {
                self.tables.push(Tables::read(self.memory, module)?);
            }
            let tables = self.tables.iter().find(|tables| tables.module == module)?;
            let entries = EhFrame::new(&tables.entries, LittleEndian);
            let index = EhFrameHdr::new(&tables.index, LittleEndian).parse(&tables.bases, 8).ok()?;
            let entry = index
                .table()?
                .fde_for_address(&entries, &tables.bases, within, EhFrame::cie_from_offset)
                .ok()?;
            let mut context = UnwindContext::new();
            let mut rows = entry.rows(&entries, &tables.bases, &mut context).ok()?;
            let mut record_at = None;
            let row = loop {
                let row = rows.next_row().ok()??;
                let (has_record, from) = (row.cfa() == &BELOW_RECORD, row.start_address());
                record_at = record_at.or(has_record.then_some(from));
                if row.contains(within) {
                    break row;
                }
            };
            let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return None };
            let base = usize::from(register.0);
            if base == RBP && self.registers[RBP].is_none() {
                let is_saved = |(_, rule): &&(_, _)| matches!(rule, RegisterRule::Offset(_));
                let saved = row.registers().filter(is_saved).count();
                self.registers[RBP] = self.find_record(record_at?, saved, entry.initial_address());
            }
            let cfa = (*self.registers.get(base)?)?.wrapping_add_signed(offset);
            let mut caller = self.registers;
            caller[RETURN] = None;
            for rule in row.registers() {
                let (register, rule) = rule.clone();
                let Some(value) = caller.get_mut(usize::from(register.0)) else { continue };
                *value = match rule {
                    RegisterRule::Offset(by) => self.memory.word(cfa.wrapping_add_signed(by)),
                    RegisterRule::SameValue => *value,
                    _ => None,
                };
            }
            // A stack that does not get shorter is none.
            if self.registers[RSP].is_some_and(|sp| cfa <= sp) {
                return None;
            }
            caller[RSP] = Some(cfa);
            self.registers = caller;
            caller[RETURN].map(drop)
        }

        /// Returns the place on the stack where a function that begins at `function` has saved the register
        /// `rbp` of its caller, below the address to which it returns. It does so right before the
        /// instruction at `record_at`, and has saved so many registers, with that address.
        fn find_record(&self, record_at: u64, saved: usize, function: u64) -> Option<u64> {
            let sp = self.registers[RSP]?;
            let callee_of = |at: u64| self.memory.callee(self.memory.word(at + 8)?);
            let below = self.memory.frame_below(record_at, saved.saturating_sub(2));
            below
                .map(|below| sp + below)
                .filter(|at| at % 16 == 0 && callee_of(*at).is_some())
                .or_else(|| (sp..sp + LARGEST_FRAME).step_by(8).find(|at| callee_of(*at) == Some(function)))
        }
    }

    impl Iterator for Walk<'_> {
        type Item = usize;

        fn next(&mut self) -> Option<usize> {
            loop {
                self.left = self.left.checked_sub(1)?;
                self.step()?;
                let pc = self.registers[RETURN]?;
                if self.memory.code_at(pc).is_some_and(|code| code.module == self.own) {
                    return Some(pc as usize);
                }
            }
        }
    }
}

#[cfg(all(
    test,
    target_os = "linux",
    target_arch = "x86_64",
    not(any(miri, paceline_loom, paceline_shuttle))
))]
mod tests;

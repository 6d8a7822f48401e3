/// The frames that belong to no app: the runtime, the C library, the allocator, panic machinery, and handlers of crashes.
/// They are no part of a group's key (docs/page.md, "Frames that are left out").
struct CrashFrameTable: Sendable {
  /// Begins of file names of libraries.
  let modules: [String]
  /// Names of functions; with `*` at its end, all names that begin so.
  let functions: [String]
  /// Begins of the paths of source files; with `/` at its begin, any part of a path.
  let files: [String]
  /// A frame that the kernel puts between a handler and what was interrupted: it and all before it are left out.
  let signalFrames: [String]

  /// The number of the rules of grouping. A change of this table, or of how a key is made, gets the next one. States of
  /// crashes note it, and move to the groups of the new rules.
  static let version = 8

  /// Ends of names of files in languages whose functions have no scope but their file.
  static let scripts: Set = [".py", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".vue", ".rb", ".php", ".pl", ".lua"]

  private let exact: Set<String>
  /// Begins of names, by their first byte.
  private let begins: [UInt8: [String]]

  init(modules: [String], functions: [String], files: [String], signalFrames: [String]) {
    (self.modules, self.functions, self.files, self.signalFrames) = (modules, functions, files, signalFrames)
    exact = Set(functions.filter { !$0.hasSuffix("*") })
    begins = Dictionary(grouping: functions.filter { $0.hasSuffix("*") }.map { String($0.dropLast()) }) {
      $0.utf8.first ?? 0
    }
  }

  static let standard = CrashFrameTable(
    modules: [
      "libc.so", "libc-", "libpthread", "libm.so", "ld-linux", "ld-musl", "libdl", "linux-vdso", "[vdso]", "libgcc_s",
      "libstdc++", "libc++", "libasan", "libtsan", "libubsan", "libjemalloc", "libtcmalloc", "libmimalloc",
      "libswiftCore", "libswift_", "libdispatch", "libFoundation", "libBlocksRuntime", "libjvm", "libpython",
      "libprism",
    ],
    functions: [
      // C: the end, the start, threads, memory.
      "abort", "raise", "gsignal", "kill", "killpg", "tgkill", "pthread_kill", "__pthread_kill*", "__GI_*",
      "__libc_*", "__assert_fail*", "__assert_perror_fail", "__assert_rtn", "__stack_chk_fail*", "__fortify_fail*",
      "__chk_fail",
      "_start", "start_thread", "clone", "clone3", "__clone*", "__syscall_cancel*", "__restore_rt", "_dl_*", "malloc",
      "calloc", "realloc", "reallocarray", "free", "cfree", "memalign", "aligned_alloc", "posix_memalign", "malloc_*",
      "malloc_printerr", "_int_malloc", "_int_free*", "_int_realloc", "unlink_chunk*", "tcache_*", "sysmalloc",
      "munmap_chunk",
      "memcpy", "memmove", "memset", "memcmp", "strlen", "strcpy", "strcmp", "__mem*", "__str*", "qsort", "qsort_r",
      "msort_*",
      // C++
      "std::*", "__gnu_cxx::*", "__cxxabiv1::*", "__cxa_*", "_Unwind_*", "__gxx_personality*", "operator new*",
      "operator delete*", "__verbose_terminate_handler", "__sanitizer::*", "__asan*", "__interceptor_*", "__tsan*",
      // Rust
      "core::*", "alloc::*", "rust_begin_unwind", "rust_panic*", "__rust_*", "__rustc*", "_rust_*", "backtrace::*",
      // Go
      "runtime.*", "panic", "testing.tRunner", "reflect.Value.call", "reflect.Value.Call",
      // Swift
      "_assertionFailure*", "_fatalErrorMessage*", "_swift_*", "swift_*", "closure in closure in _assertionFailure",
      "closure in _assertionFailure", "assertionFailure*", "fatalError*", "preconditionFailure*", "Array.subscript.*",
      "Swift runtime failure*",
      "ContiguousArray.subscript.*", "Array._checkSubscript*", "Dictionary.subscript.*",
      "Optional.unsafelyUnwrapped.*",
      "thunk for *", "reabstraction thunk*", "partial apply for thunk*", "$sS*", "$ss*",
      // Java, Node, Python
      "java.*", "javax.*", "jdk.*", "sun.*", "com.sun.*", "kotlin.*", "scala.*", "Module._*",
      "Module.load", "Function.executeUserEntryPoint", "_bootstrap", "_bootstrap_inner",
      // The kernel
      "dump_stack*", "show_stack", "__die*", "die", "oops_end", "page_fault_oops", "no_context",
      "__bad_area*", "bad_area*", "exc_page_fault", "exc_general_protection", "exc_invalid_op", "asm_exc_*",
      "do_user_addr_fault", "do_page_fault", "entry_SYSCALL_*",
      "do_syscall_*", "__x64_sys_*", "x64_sys_call", "ret_from_fork*", "kthread", "worker_thread", "process_one_work",
      "warn_slowpath_*", "__warn*", "report_bug", "handle_bug",
      // Handlers of crashes
      "on_crash", "crash_payload", "prism_crash_*", "backtrace", "backtrace_symbols*", "google::*",
      "folly::symbolizer::*",
    ],
    files: [
      "node:", "internal/", "<anonymous>", "<frozen ", "/lib/python", "/rustc/", "/library/std/",
      "/usr/local/go/src/runtime/",
    ],
    signalFrames: ["<signal handler called>", "__restore_rt", "__kernel_rt_sigreturn", "runtime.sigpanic", "_sigtramp"])

  func hasModule(_ name: String) -> Bool { modules.contains { name.hasPrefix($0) } }

  func hasFunction(_ name: String) -> Bool {
    exact.contains(name) || begins[name.utf8.first ?? 0]?.contains { name.hasPrefix($0) } == true
  }

  /// Packages that are installed beside Python's own may be the app.
  func hasFile(_ path: String) -> Bool {
    path[...].firstPlace(of: "-packages/") == nil
      && files.contains { $0.hasPrefix("/") ? path[...].firstPlace(of: $0) != nil : path.hasPrefix($0) }
  }

  /// The places of the app's frames, the innermost first. A stack without any is whole: then the crash is the runtime's own.
  func appPlaces(_ frames: [CrashFrame]) -> [Int] {
    let signal = frames.lastIndex { $0.function.map(signalFrames.contains) == true }
    let own = ((signal.map { $0 + 1 } ?? 0)..<frames.count).filter { place in
      let frame = frames[place]
      return !(frame.module.map(hasModule) ?? false) && !(frame.function.map(hasFunction) ?? false)
        && !(frame.file.map(hasFile) ?? false)
    }
    return own.isEmpty ? Array(frames.indices) : own
  }

  func appFrames(_ frames: [CrashFrame]) -> [CrashFrame] { appPlaces(frames).map { frames[$0] } }
}

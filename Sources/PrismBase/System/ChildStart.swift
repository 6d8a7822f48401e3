public import Glibc

/// Starts programs.
public enum ChildStart {
  /// Why a program was not started: an `errno`.
  public struct Fault: Error {
    public let code: Int32
  }

  /// - Parameters:
  ///   - words: an absolute path, or a name that is found along `PATH`; then the arguments.
  ///   - input: a descriptor that is its standard input; `output` and `error` likewise.
  ///   - ownGroup: a terminal's Ctrl-C is not for it.
  ///   - heeding: a signal that is not ignored in it; the others are ignored where this process ignores them. nil: as in a
  ///     shell's child no signal is ignored. None is blocked: the thread that starts it may have blocked all.
  /// - Returns: its process.
  public static func start(
    _ words: [String], input: Int32, output: Int32, error: Int32, ownGroup: Bool = false, heeding: Int32? = nil
  ) throws(Fault) -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer {
      posix_spawn_file_actions_destroy(&actions)
      posix_spawnattr_destroy(&attributes)
    }
    for (place, descriptor) in [input, output, error].enumerated() {
      posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(place))
    }
    var (none, heeded) = (sigset_t(), sigset_t())
    sigemptyset(&none)
    if heeding == nil { sigfillset(&heeded) } else { sigemptyset(&heeded) }
    if let heeding { sigaddset(&heeded, heeding) }
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &heeded)
    posix_spawnattr_setpgroup(&attributes, 0)
    let group = ownGroup ? POSIX_SPAWN_SETPGROUP : 0
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | group))
    var arguments = words.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var process: pid_t = 0
    let code = posix_spawnp(&process, words[0], &actions, &attributes, &arguments, environ)
    guard code == 0 else { throw Fault(code: code) }
    return process
  }
}

/// The output of programs.
public enum ChildOutput {
  /// Why no more was read.
  public enum End { case whole, tooLate, tooLong }

  /// Reads until the other side of a pipe is closed. Blocks for `seconds` at most.
  /// - Parameter bytesMax: after more than these it reads no more.
  public static func read(_ descriptor: Int32, bytesMax: Int, seconds: Int) -> (bytes: [UInt8], end: End) {
    let deadline = ContinuousClock.now + .seconds(seconds)
    var (output, chunk) = ([UInt8](), [UInt8](repeating: 0, count: 64 * 1024))
    while output.count <= bytesMax {
      let rest = Int32((deadline - ContinuousClock.now) / .milliseconds(1))
      var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      guard rest > 0 else { return (output, .tooLate) }
      guard poll(&waiting, 1, rest) > 0 else { continue }
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      if count == 0 { return (output, .whole) }
      if count > 0 { output += chunk[..<count] }
    }
    return (output, .tooLong)
  }

  /// Waits until a program has ended. - Returns: its status, as `waitpid` says it.
  public static func status(of process: pid_t) -> Int32 {
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 && errno == EINTR {}
    return status
  }
}

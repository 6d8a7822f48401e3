public import Glibc

/// Starts programs as a shell does: no signal is blocked or ignored in them.
public enum ChildStart {
  /// Why a program was not started: an `errno`.
  public struct Fault: Error {
    public let code: Int32
  }

  /// - Parameters:
  ///   - words: an absolute path, then the arguments.
  ///   - input: a descriptor that is its standard input; `output` and `error` likewise.
  ///   - ownGroup: a terminal's Ctrl-C is not for it.
  /// - Returns: its process.
  public static func start(
    _ words: [String], input: Int32, output: Int32, error: Int32, ownGroup: Bool = false
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
    var (none, all) = (sigset_t(), sigset_t())
    sigemptyset(&none)
    sigfillset(&all)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    posix_spawnattr_setpgroup(&attributes, 0)
    posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (ownGroup ? POSIX_SPAWN_SETPGROUP : 0)))
    var arguments = words.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var process: pid_t = 0
    let code = posix_spawn(&process, words[0], &actions, &attributes, &arguments, environ)
    guard code == 0 else { throw Fault(code: code) }
    return process
  }
}

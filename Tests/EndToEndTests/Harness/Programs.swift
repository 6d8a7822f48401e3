import Foundation
import Glibc
import PrismTestSupport

/// The programs under test: in the folder `PRISM_PROGRAMS`, or as `swift build` put them beside the tests.
enum Programs {
  private static let given = ProcessInfo.processInfo.environment["PRISM_PROGRAMS"]
  /// They are release programs, as `make soak-adversary` has them.
  static let areGiven = given != nil
  static let folder: String = {
    if let given { return given }
    let path = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    return String(path.prefix(upTo: path.lastIndex(of: "/") ?? path.startIndex))
  }()
  static let prismd = "\(folder)/prismd"
  static let prismctl = "\(folder)/prismctl"
  static let collector = "\(folder)/prism-collector"

  /// Runs a program to its end. Its streams are files, which can't fill up and stop it.
  static func run(
    _ program: String, _ arguments: [String] = [], input: String = "", environment: [String: String] = [:]
  ) async throws -> Ran {
    let folder = TemporaryFolder.make()
    defer { try? FileManager.default.removeItem(atPath: folder) }  // a left folder harms no test
    try input.write(toFile: "\(folder)/in", atomically: false, encoding: .utf8)
    let streams = StartedProgram.Streams(
      input: open("\(folder)/in", O_RDONLY | O_CLOEXEC), output: try outputFile("\(folder)/out"),
      error: try outputFile("\(folder)/err"))
    defer { for descriptor in [streams.input, streams.output, streams.error] { descriptor.map { _ = close($0) } } }
    let exitCode = try await StartedProgram(program, arguments, environment: environment, streams).end()
    return Ran(
      exitCode: exitCode, output: try String(contentsOfFile: "\(folder)/out", encoding: .utf8),
      error: try String(contentsOfFile: "\(folder)/err", encoding: .utf8))
  }

  /// For appending; made if it is not there.
  static func outputFile(_ path: String) throws -> Int32 {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Failed("\(path): errno \(errno)") }
    return descriptor
  }
}

struct Failed: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// How long a test waits for anything before it fails: long enough for a machine with far more to do than it can. No test
/// of these programs has a shorter wait of its own, so no verdict depends on how busy the machine is.
let patience = Duration.seconds(600)

extension Duration {
  /// Whole seconds, for a command's argument.
  var secondsText: String { String(components.seconds) }
}

/// Looks until `condition` holds, for as long as `patience`.
/// - Parameter otherwise: what there was instead.
func waitUntil(
  _ what: String, otherwise: @autoclosure () -> String = "",
  _ condition: () async throws -> Bool
) async throws {
  let clock = ContinuousClock()
  let deadline = clock.now + patience
  while clock.now < deadline {
    if try await condition() { return }
    try await Task.sleep(for: .milliseconds(5))
  }
  throw Failed("this did not come within \(patience): \(what) \(otherwise())")
}

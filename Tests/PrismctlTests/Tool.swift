import Foundation

/// A program run to its end; its output is short enough for a pipe.
struct Tool {
  let exitCode: Int32
  let output: String

  /// - Parameter program: found along `PATH`, or a path.
  init(_ program: String, _ arguments: [String], input: String = "") throws {
    let process = Process()
    process.executableURL = URL(filePath: program.hasPrefix("/") ? program : "/usr/bin/env")
    process.arguments = program.hasPrefix("/") ? arguments : [program] + arguments
    let (given, taken) = (Pipe(), Pipe())
    (process.standardInput, process.standardOutput, process.standardError) = (given, taken, taken)
    try process.run()
    given.fileHandleForWriting.write(Data(input.utf8))
    given.fileHandleForWriting.closeFile()
    output = String(decoding: taken.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    exitCode = process.terminationStatus
  }

  var lines: [String] { output.split(separator: "\n").map { String($0).trimmingCharacters(in: .whitespaces) } }

  /// A program of this package, as `swift build` put it beside the tests.
  static func built(_ name: String) -> String {
    let test = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    return String(test.prefix(upTo: test.lastIndex(of: "/") ?? test.startIndex)) + "/" + name
  }
}

/// A file of the package that is held to the code. `PRISM_REGENERATE=1` writes its generated part again.
enum HeldFile {
  static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  /// The text between the lines `begin` and `.\" end`, after it was written again if that was asked for.
  static func part(of path: String, after begin: String, regeneratedAs expected: String) throws -> String {
    var whole = try text(path)
    guard let start = whole.firstRange(of: begin + "\n")?.upperBound,
      let stop = whole[start...].firstRange(of: ".\\\" end\n")?.lowerBound
    else { return "" }
    if ProcessInfo.processInfo.environment["PRISM_REGENERATE"] != nil {
      whole.replaceSubrange(start..<stop, with: expected)
      try Data(whole.utf8).write(to: root.appending(path: path))
      return expected
    }
    return String(whole[start..<stop])
  }
}

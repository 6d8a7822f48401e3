import Foundation

/// Files of the package that are held to the code. `PRISM_REGENERATE=1 swift test --filter "Shipped files"` writes them
/// again from the table of keys. Then read the changes as any other change.
enum Repository {
  static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  static let isRegenerating = ProcessInfo.processInfo.environment["PRISM_REGENERATE"] != nil

  static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  /// The file's text, after it was written again if that was asked for.
  static func text(_ path: String, regeneratedAs expected: String) throws -> String {
    if isRegenerating { try Data(expected.utf8).write(to: root.appending(path: path)) }
    return try text(path)
  }
}

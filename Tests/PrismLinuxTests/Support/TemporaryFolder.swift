import Foundation

/// A fresh folder below `/tmp`, removed with the value. Short, so that sockets fit in it.
final class TemporaryFolder: Sendable {
  let path: String

  init() {
    var template = Array("/tmp/prism.XXXXXX".utf8CString)
    precondition(mkdtemp(&template) != nil, "no folder can be made in /tmp")
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func callAsFunction(_ name: String) -> String { path + "/" + name }

  func write(_ text: String, to name: String) throws {
    try text.write(toFile: self(name), atomically: false, encoding: .utf8)
  }
}

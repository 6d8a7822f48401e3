import Foundation

/// A new folder, removed with the value. Its path is short, so that sockets fit in it.
public final class TemporaryFolder: Sendable {
  public let path: String

  /// - Parameter parent: `/dev/shm` is in memory, for tests that write much.
  public init(in parent: String = "/tmp") { path = Self.make(in: parent) }

  deinit { try? FileManager.default.removeItem(atPath: path) }  // a folder that is left harms no test

  /// Makes a folder that stays until someone removes it.
  public static func make(in parent: String = "/tmp") -> String {
    var template = Array("\(parent)/prism.XXXXXX".utf8CString)
    precondition(mkdtemp(&template) != nil, "no folder can be made in \(parent): errno \(errno)")
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// The path of a file in it.
  public func callAsFunction(_ name: String) -> String { path + "/" + name }

  public func write(_ text: String, to name: String) throws {
    try text.write(toFile: self(name), atomically: false, encoding: .utf8)
  }
}

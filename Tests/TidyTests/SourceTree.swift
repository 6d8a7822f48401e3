import Foundation

/// The package's own files, as they lie in the checkout that this test was built from.
enum SourceTree {
  struct File: CustomStringConvertible, Sendable {
    /// From the package's root: `Sources/PrismBase/Logger.swift`.
    let path: String
    let text: String
    /// The text line by line.
    var lines: [Substring] { text.split(separator: "\n", omittingEmptySubsequences: false) }
    /// What the compiler sees: comments and the content of string literals are gone, the lines stay.
    let code: String

    init(path: String, text: String) {
      (self.path, self.text, code) = (path, text, SwiftCode.withoutTextAndComments(text))
    }
    var description: String { path }
    var name: String { String(path.split(separator: "/").last ?? "") }
  }

  static let root = String(#filePath.split(separator: "/Tests/TidyTests/")[0])

  static let sources = swiftFiles(under: "Sources")
  static let tests = swiftFiles(under: "Tests")
  static let modules = Set(sources.map { String($0.path.split(separator: "/")[1]) })

  /// - Parameter folder: `Sources` or `Tests`.
  static func files(in folder: String) -> [File] { folder == "Sources" ? sources : tests }
  static func sources(of module: String) -> [File] { sources.filter { $0.path.hasPrefix("Sources/\(module)/") } }

  static func read(_ path: String) -> String? { try? String(contentsOfFile: "\(root)/\(path)", encoding: .utf8) }

  static func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: "\(root)/\(path)") }

  /// Paths from the package's root, sorted.
  static func paths(under folder: String, ending suffix: String) -> [String] {
    let found = FileManager.default.enumerator(atPath: "\(root)/\(folder)")?.compactMap { $0 as? String } ?? []
    return found.filter { $0.hasSuffix(suffix) }.sorted().map { "\(folder)/\($0)" }
  }

  private static func swiftFiles(under folder: String) -> [File] {
    paths(under: folder, ending: ".swift").compactMap { path in read(path).map { File(path: path, text: $0) } }
  }
}

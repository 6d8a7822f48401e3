import PrismBase
import PrismProtocol

/// The namespaces' files of a folder, by name. Other files are ignored; hidden ones belong to editors.
struct NamespaceFileNames {
  private(set) var files: [NamespaceName: String] = [:]
  /// Of files that look like a namespace's, and have another ending or name.
  private(set) var faults: [ConfigurationFault] = []

  private static let endings = [".yaml", ".yml", ".json"]

  /// - Parameter twice: the fault of a second file of a namespace, by its name without the ending and the first file.
  init(_ names: [String], in folder: String, twice: (_ stem: String, _ other: String) -> String) {
    for name in names where !name.hasPrefix(".") {
      let file = FilePath.joined(folder, name)
      guard let stem = Self.stem(name) else {
        if Self.stem(name.lowercased()) != nil {
          let ending = name[name.lastIndex(of: ".")!...]
          refuse(file, "ends in \(ending), and is not read; rename it to end in \(ending.lowercased())")
        }
        continue
      }
      guard let namespace = NamespaceName(stem) else {
        refuse(file, "is named \(stem.shownInFault), must be a namespace's name: 1 to 64 of A-Z a-z 0-9 _ -")
        continue
      }
      if let other = files[namespace] { refuse(file, twice(stem, other)) } else { files[namespace] = file }
    }
  }

  /// The name without its ending; nil for other files.
  private static func stem(_ name: String) -> String? {
    endings.first { name.hasSuffix($0) }.map { String(name.dropLast($0.count)) }
  }

  private mutating func refuse(_ file: String, _ message: String) {
    faults.append(ConfigurationFault(file: file, line: 1, key: "file", message: message))
  }
}

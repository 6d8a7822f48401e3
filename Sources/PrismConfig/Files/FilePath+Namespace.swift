import PrismBase

extension FilePath {
  /// The name of a namespace's file without its ending; nil for other files.
  static func namespaceStem(_ name: String) -> String? {
    [".yaml", ".yml", ".json"].first { name.hasSuffix($0) }.map { String(name.dropLast($0.count)) }
  }

  /// Why a file is not read though its name looks like a namespace's; nil for all others.
  static func fault(inEndingOf name: String) -> String? {
    guard namespaceStem(name) == nil, namespaceStem(name.lowercased()) != nil else { return nil }
    let ending = name[name.lastIndex(of: ".")!...]
    return "ends in \(ending), and is not read; rename it to end in \(ending.lowercased())"
  }
}

/// The texts that EnglishTests reads, by area. An area is what one person rewrites in one go.
enum EnglishAreas {
  struct Area: Sendable {
    let name: String
    let faults: [LanguageRules.Fault]
  }

  static let all: [Area] = pages + [configuration, tools] + modules + [tests]

  static let pages: [Area] = [
    area("pages", of: ["README.md", "CONTRIBUTING.md", "SECURITY.md"] + files("docs", ".md"), Prose.page),
    area("manual pages", of: (1...8).flatMap { files("docs/man", ".\($0)") }, Prose.manual),
    area("clients' pages", of: files("clients", "README.md"), Prose.page),
  ]

  static let configuration = area("config", of: files("config", ".yaml")) { Prose.lineComments($0, mark: "#") }

  /// What is not Swift: the client libraries, the C wrappers, scripts, units.
  static let tools = Area(
    name: "clients, scripts, units",
    faults: (files("clients", ".c") + files("clients", ".h") + files("Sources", ".h") + files("Sources", ".c")).flatMap
    {
      faults(in: $0) { Prose.blockComments($0) + Prose.lineComments($0, mark: "//") }
    }
      + (files("clients", ".py") + files("scripts", "") + files("systemd", "") + files("debian", "")).flatMap {
        faults(in: $0) { Prose.lineComments($0, mark: "#") }
      })

  static let modules: [Area] = SourceTree.modules.sorted().map { module in
    // The page's files are markup and scripts, whose words are not only text.
    let files = SourceTree.sources(of: module).filter { !$0.path.hasSuffix("/PageFiles.swift") }
    return Area(name: module, faults: files.flatMap(faults))
  }

  static let tests = Area(
    name: "Tests", faults: SourceTree.tests.filter { !$0.path.hasPrefix("Tests/TidyTests/") }.flatMap(faults))

  private static func files(_ folder: String, _ suffix: String) -> [String] {
    SourceTree.paths(under: folder, ending: suffix)
  }

  private static func area(_ name: String, of paths: [String], _ read: (String) -> [Prose.Passage]) -> Area {
    Area(name: name, faults: paths.flatMap { faults(in: $0, read) })
  }

  private static func faults(in path: String, _ read: (String) -> [Prose.Passage]) -> [LanguageRules.Fault] {
    SourceTree.read(path).map { LanguageRules.faults(in: read($0), path: path) } ?? []
  }

  private static func faults(in file: SourceTree.File) -> [LanguageRules.Fault] {
    LanguageRules.faults(
      in: Prose.lineComments(file.text, mark: "//") + Prose.literals(file.text), path: file.path)
  }
}

import Testing

/// docs/architecture.md, "Rooms" decides what a module may import. SwiftPM alone lets a module import what it never
/// declared. A new arrow between two modules is a decision, made in that table.
@Suite struct ImportTests {
  private static let rooms = ArchitectureTable.rooms
  private static let system: Set<String> = ["Glibc", "Dispatch", "Synchronization"]

  @Test("every module is in the table") func everyRoomIsListed() {
    #expect(SourceTree.modules.isSubset(of: Self.rooms.keys), "a new module needs a row in docs/architecture.md")
    for name in Self.rooms.keys { #expect(SourceTree.exists("Sources/\(name)"), "there is no Sources/\(name)") }
  }

  @Test("a module imports only what the table grants it", arguments: rooms.keys.sorted())
  func importsAreGranted(module: String) throws {
    var allowed = try #require(Self.rooms[module]).union(Self.system)
    // No input and output of its own.
    if module == "PrismEngine" { allowed.remove("Glibc") }
    for file in SourceTree.sources(of: module) {
      for match in file.code.matches(of: /(?m)^\s*(?:@\w+ )?(?:\w+ )?import (?:\w+ )?(\w+)/) {
        #expect(allowed.contains(String(match.1)), "\(file) imports \(match.1)")
      }
    }
  }

  @Test("the table only goes up: no module is reached from itself", arguments: rooms.keys.sorted())
  func importsHaveNoCycle(module: String) {
    var reached: Set<String> = []
    var next = Self.rooms[module] ?? []
    while let name = next.popFirst() {
      if reached.insert(name).inserted { next.formUnion(Self.rooms[name] ?? []) }
    }
    #expect(!reached.contains(module))
  }

  @Test("Package.swift declares what the table grants", arguments: rooms.keys.sorted())
  func packageAgrees(module: String) throws {
    let package = try #require(SourceTree.read("Package.swift"))
    let declaration =
      "(?:(?:library|program|system)\\(|\\.target\\(name:)\\s*\"\(module)\",?\\s*(?:dependencies: )?(\\[[^\\]]*\\])?"
    let match = try #require(package.firstMatch(of: Regex(declaration)), "Package.swift has no target \(module)")
    let list = match.output[1].substring ?? ""
    #expect(Set(list.matches(of: /"(\w+)"/).map { String($0.1) }) == Self.rooms[module])
  }

  @Test("in every Swift target an import is internal, and a public one that nothing public needs is an error")
  func importsAreInternal() throws {
    let package = try #require(SourceTree.read("Package.swift"))
    let strict = try #require(package.firstMatch(of: /let strict: \[SwiftSetting\] = \[([^\]]*)\]/)).1
    #expect(strict.contains(".enableUpcomingFeature(\"InternalImportsByDefault\")"))
    #expect(strict.contains(".treatAllWarnings(as: .error)"))

    let targets = package.split(separator: /\.(?:target|executableTarget|testTarget)\(/).dropFirst()
    #expect(targets.count > 3)
    for target in targets where !target.starts(with: /\s*name: "C[A-Z]/) {
      #expect(target.contains("swiftSettings: strict"), "use the settings of all: \(target.prefix(60))")
    }
    for file in SourceTree.sources + SourceTree.tests {
      let written = file.code.contains(/(?m)^\s*(?:internal import|@_exported|@_implementationOnly)\b/)
      #expect(!written, "\(file): import is internal already, and a module gives on no other")
    }
  }

  @Test("PrismBase is what several rooms need: one way to read a file, to open a socket, to look up an account")
  func filesAndSocketsAreInOnePlace() {
    let calls = [
      (/\bgetpw\w+\(|\bgetgr(?:nam|gid)\w*\(/, "SystemAccounts"), (/\bsockaddr_un\(\)/, "UnixAddress"),
      (/\bopendir\(/, "Folder"), (/\binet_pton\(/, "HostAndPort"), (/\bO_RDONLY \| O_DIRECTORY\b/, "Folder"),
    ]
    for (call, type) in calls {
      let places = SourceTree.sources.filter { $0.code.contains(call) }.map(\.path)
      #expect(places.allSatisfy { $0.hasPrefix("Sources/PrismBase/") }, "use \(type) of PrismBase: \(places)")
      #expect(places.contains { $0.hasSuffix("/\(type).swift") })
    }
  }
}

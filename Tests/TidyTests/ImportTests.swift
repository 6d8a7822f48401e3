import Testing

/// The rooms of docs/architecture.md: what each may import. SwiftPM alone lets a module import what it never declared.
/// A new arrow between two rooms is a decision, made here.
private let allowedImports: [String: Set<String>] = [
  "CSQLite": [], "CZlib": [], "CDeflate": [], "COpenSSL": [], "CCurl": [], "CYAML": [], "CMicroHTTPD": [], "CLinux": [],
  "PrismBase": system,
  "PrismProtocol": system,
  "PrismPacket": system.union(["CZlib", "CDeflate", "COpenSSL", "PrismProtocol"]),
  "PrismConfig": system.union(["CYAML", "PrismProtocol"]),
  "PrismStore": system.union(["CSQLite", "CDeflate", "CJoinedWrites", "CLinux", "PrismBase", "PrismProtocol"]),
  // No C and no I/O of its own: not even Glibc.
  "PrismEngine": fiveRooms.union(["Dispatch", "Synchronization"]),
  "PrismHTTP": system.union(["CMicroHTTPD", "PrismBase"]),
  "PrismLinux": system.union([
    "CCurl", "CLinux", "PrismHTTP", "PrismBase", "PrismProtocol", "PrismConfig", "PrismEngine",
  ]),
  "PrismClient": system.union(["PrismBase", "PrismProtocol"]),
  "PrismCollector": system.union([
    "PrismHTTP", "PrismPacket", "PrismProtocol", "PrismBase", "PrismStore", "PrismConfig",
  ]),
  "prismd": system.union(fiveRooms).union(["PrismEngine", "PrismHTTP", "PrismLinux"]),
  "prismctl": system.union(["CLinux", "PrismProtocol", "PrismConfig", "PrismPacket", "PrismClient"]),
  // PrismConfig: the faults of the folder that is served as remote configuration.
  "prism-collector": system.union(["PrismCollector", "PrismConfig", "PrismHTTP", "PrismBase", "PrismProtocol"]),
]
private let system: Set<String> = ["Glibc", "Dispatch", "Synchronization"]
private let fiveRooms: Set<String> = ["PrismBase", "PrismProtocol", "PrismPacket", "PrismConfig", "PrismStore"]

@Suite struct ImportTests {
  @Test("every room stands in the table of imports") func everyRoomIsListed() {
    #expect(SourceTree.modules.isSubset(of: allowedImports.keys), "a new room needs a line in the table")
  }

  @Test("a room imports only what the table grants it", arguments: allowedImports.keys.sorted())
  func importsAreGranted(module: String) {
    for file in SourceTree.sources(of: module) {
      for match in file.code.matches(of: /(?m)^\s*(?:@\w+ )?(?:\w+ )?import (?:\w+ )?(\w+)/) {
        #expect(allowedImports[module, default: []].contains(String(match.1)), "\(file) imports \(match.1)")
      }
    }
  }

  @Test("PrismBase is what every room needs and nothing else: four files") func baseStaysSmall() {
    #expect(
      SourceTree.sources(of: "PrismBase").map(\.name) == [
        "DispatchQueueExecutor.swift", "Logger.swift", "StandardStreams.swift", "TimeSource.swift",
      ])
  }
}

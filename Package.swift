// swift-tools-version: 6.2
import PackageDescription

/// Every target of this package is built alike: Swift 6 language mode, warnings are errors.
let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .treatAllWarnings(as: .error),
]

func library(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .target(name: name, dependencies: dependencies, swiftSettings: strict)
}
func program(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .executableTarget(name: name, dependencies: dependencies, swiftSettings: strict)
}
func tests(
  _ name: String, _ dependencies: [Target.Dependency], exclude: [String] = [], resources: [Resource]? = nil
) -> Target {
  .testTarget(name: name, dependencies: dependencies, exclude: exclude, resources: resources, swiftSettings: strict)
}
func system(_ name: String, pkgConfig: String? = nil, apt: String) -> Target {
  .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([apt])])
}

// `make build` says it, for `--version`.
let commit: [CSetting] = [.define("PRISM_COMMIT", to: "\"\(Context.environment["PRISM_COMMIT"] ?? "")\"")]

let package = Package(
  name: "prism",
  products: [
    .library(name: "PrismClient", targets: ["PrismClient"]),
    .executable(name: "prismd", targets: ["prismd"]),
    .executable(name: "prismctl", targets: ["prismctl"]),
    .executable(name: "prism-collector", targets: ["prism-collector"]),
  ],
  targets: [
    // C, by Debian's names. A shim.h holds the static inline wrappers for what Swift can't call.
    system("CSQLite", pkgConfig: "sqlite3", apt: "libsqlite3-dev"),
    system("CZlib", pkgConfig: "zlib", apt: "zlib1g-dev"),
    system("CDeflate", pkgConfig: "libdeflate", apt: "libdeflate-dev"),
    system("CZstd", pkgConfig: "libzstd", apt: "libzstd-dev"),
    system("COpenSSL", pkgConfig: "libcrypto", apt: "libssl-dev"),
    system("CCurl", pkgConfig: "libcurl", apt: "libcurl4-openssl-dev"),
    system("CYAML", pkgConfig: "yaml-0.1", apt: "libyaml-dev"),
    system("CMicroHTTPD", pkgConfig: "libmicrohttpd", apt: "libmicrohttpd-dev"),
    system("CPostgreSQL", pkgConfig: "libpq", apt: "libpq-dev"),
    system("CKafka", pkgConfig: "rdkafka", apt: "librdkafka-dev"),
    system("CLinux", apt: "linux-libc-dev"),

    // C of the project's own, where SQLite wants functions of C.
    .target(name: "CJoinedWrites", dependencies: ["CSQLite"]),
    .target(name: "CArguments", cSettings: commit),
    .target(name: "CSymbols"),

    // The rooms. TidyTests holds each one's imports to a table.
    library("PrismBase"),
    library("PrismProtocol", ["PrismBase"]),
    library("PrismControl", ["PrismBase", "PrismProtocol"]),
    library("PrismPacket", ["PrismBase", "PrismProtocol", "CZlib", "CDeflate", "CZstd", "COpenSSL"]),
    library("PrismConfig", ["PrismBase", "PrismProtocol", "CYAML"]),
    library("PrismSQLite", ["CSQLite", "CJoinedWrites"]),
    library("PrismRecovery", ["PrismBase", "PrismSQLite"]),
    library("PrismSQL", ["PrismBase", "PrismSQLite", "CPostgreSQL"]),
    library("PrismStore", ["PrismBase", "PrismProtocol", "PrismSQLite", "PrismRecovery", "CDeflate", "CLinux"]),
    library("PrismAdmission", ["PrismBase", "PrismProtocol", "PrismControl", "PrismConfig"]),
    library(
      "PrismEngine",
      ["PrismBase", "PrismProtocol", "PrismControl", "PrismPacket", "PrismConfig", "PrismStore", "PrismAdmission"]),
    library("PrismHTTP", ["PrismBase", "CMicroHTTPD"]),
    library("PrismCurl", ["PrismBase", "PrismProtocol", "CCurl"]),
    library(
      "PrismLinux",
      [
        "PrismBase", "PrismProtocol", "PrismControl", "PrismPacket", "PrismConfig", "PrismAdmission", "PrismInputs",
        "PrismEngine", "PrismHTTP", "CArguments", "CLinux",
      ]),
    library(
      "PrismInputs",
      ["PrismBase", "PrismProtocol", "PrismControl", "PrismPacket", "PrismConfig", "PrismAdmission", "CLinux"]),
    .target(name: "CPrism"),
    library("PrismClient", ["PrismBase", "PrismProtocol", "CPrism"]),
    library(
      "PrismOutputs",
      ["PrismBase", "PrismProtocol", "PrismPacket", "PrismConfig", "PrismCurl", "PrismSQL", "CKafka", "CZstd"]),
    library(
      "PrismCollector",
      [
        "PrismBase", "PrismProtocol", "PrismPacket", "PrismSQLite", "PrismRecovery", "PrismSQL", "PrismHTTP",
        "PrismConfig", "PrismCurl", "PrismOutputs", "CSymbols",
      ]),
    program(
      "prismd",
      [
        "CArguments", "PrismBase", "PrismProtocol", "PrismControl", "PrismPacket", "PrismConfig", "PrismRecovery",
        "PrismStore", "PrismAdmission", "PrismEngine", "PrismHTTP", "PrismCurl", "PrismLinux", "PrismInputs",
      ]),
    program(
      "prismctl",
      [
        "CArguments", "PrismBase", "PrismProtocol", "PrismControl", "PrismConfig", "PrismPacket", "PrismClient",
        "PrismCurl", "CLinux",
      ]),
    program(
      "prism-collector",
      ["CArguments", "PrismCollector", "PrismConfig", "PrismHTTP", "PrismBase", "PrismPacket", "PrismProtocol"]),

    .executableTarget(
      name: "packet-bench", dependencies: ["PrismStore", "PrismPacket", "PrismProtocol"], path: "bench/packet",
      swiftSettings: strict),
    .executableTarget(
      name: "collector-bench", dependencies: ["PrismBase", "PrismPacket", "PrismProtocol"], path: "bench/collector",
      swiftSettings: strict),

    .executableTarget(
      name: "client-load-swift", dependencies: ["PrismClient", "PrismProtocol"], path: "Tests/ClientTests/SwiftLoad",
      swiftSettings: strict),

    // What tests share, and the tests.
    .target(name: "CSpawn", path: "Tests/CSpawn"),
    .target(
      name: "PrismTestSupport",
      dependencies: [
        "PrismBase", "PrismProtocol", "PrismPacket", "PrismConfig", "PrismStore", "PrismAdmission", "PrismEngine",
        "CSpawn",
      ],
      path: "Tests/PrismTestSupport", swiftSettings: strict),
    tests("PrismBaseTests", ["PrismBase", "PrismTestSupport"]),
    tests("PrismProtocolTests", ["PrismBase", "PrismProtocol", "PrismControl", "PrismTestSupport"]),
    tests("PrismPacketTests", ["PrismPacket", "PrismBase", "PrismProtocol", "PrismTestSupport"]),
    tests("PrismConfigTests", ["PrismConfig", "PrismBase", "PrismProtocol", "PrismTestSupport"]),
    tests("PrismSQLiteTests", ["PrismSQLite", "PrismTestSupport"]),
    tests("PrismRecoveryTests", ["PrismRecovery", "PrismSQLite", "PrismTestSupport"]),
    tests("PrismSQLTests", ["PrismSQL", "PrismSQLite", "PrismTestSupport"]),
    tests(
      "PrismStoreTests",
      [
        "PrismStore", "PrismSQLite", "PrismBase", "PrismProtocol", "PrismCollector", "PrismHTTP", "PrismPacket",
        "PrismTestSupport",
      ]),
    tests(
      "PrismAdmissionTests",
      [
        "PrismAdmission", "PrismEngine", "PrismStore", "PrismConfig", "PrismControl", "PrismProtocol", "PrismBase",
        "PrismTestSupport",
      ]),
    tests(
      "PrismEngineTests",
      ["PrismEngine", "PrismStore", "PrismConfig", "PrismControl", "PrismPacket", "PrismProtocol", "PrismTestSupport"]),
    tests(
      "PrismLinuxTests",
      [
        "CLinux", "PrismLinux", "PrismCurl", "PrismAdmission", "PrismEngine", "PrismHTTP", "PrismConfig",
        "PrismControl", "PrismProtocol", "PrismBase", "PrismTestSupport",
      ]),
    tests(
      "PrismInputsTests",
      [
        "PrismInputs", "PrismLinux", "PrismAdmission", "PrismEngine", "PrismConfig", "PrismControl", "PrismPacket",
        "PrismProtocol", "PrismBase", "PrismTestSupport",
      ],
      resources: [.copy("Vectors")]),
    tests("PrismHTTPTests", ["PrismHTTP", "PrismBase", "PrismTestSupport"]),
    tests(
      "PrismCollectorTests",
      [
        "PrismCollector", "PrismOutputs", "PrismConfig", "PrismCurl", "PrismHTTP", "PrismPacket", "PrismProtocol",
        "PrismBase", "PrismSQL", "PrismSQLite", "PrismTestSupport",
      ], exclude: ["Outputs/Kafka/kafka-mock.c"], resources: [.copy("Vectors")]),
    tests(
      "PrismctlTests",
      ["prismctl", "prism-collector", "PrismBase", "PrismProtocol", "PrismControl", "PrismTestSupport"],
      resources: [.copy("complete.zsh")]),
    tests("PrismClientTests", ["PrismClient", "PrismBase", "PrismProtocol", "PrismTestSupport"]),
    tests(
      "EndToEndTests",
      [
        "PrismClient", "PrismProtocol", "PrismPacket", "PrismBase", "PrismConfig", "PrismSQLite", "PrismStore",
        "PrismEngine", "PrismHTTP", "PrismCurl", "PrismLinux", "PrismCollector", "PrismOutputs", "PrismSQL",
        "PrismTestSupport",
      ], exclude: ["Budgets/allocations.c", "Adversary/attack.py"]),
    .target(name: "CFaultVFS", path: "Tests/CFaultVFS", linkerSettings: [.linkedLibrary("sqlite3")]),
    tests(
      "StoreFaultTests",
      [
        "CFaultVFS", "PrismRecovery", "PrismSQL", "PrismSQLite", "PrismStore", "PrismCollector", "PrismOutputs",
        "PrismConfig", "PrismHTTP", "PrismPacket", "PrismBase", "PrismProtocol", "PrismTestSupport",
      ],
      resources: [.copy("Fixtures")]),
    .target(name: "CJobHook", path: "Tests/CJobHook"),
    tests(
      "SimulationTests",
      [
        "CJobHook", "PrismBase", "PrismConfig", "PrismAdmission", "PrismEngine", "PrismPacket", "PrismProtocol",
        "PrismSQLite", "PrismStore",
        "PrismTestSupport",
      ]),
    tests("TidyTests", []),
  ]
)

// Programs for libFuzzer, one a file of Tests/Fuzz. scripts/fuzz builds them, with sanitizers and apart from the rest.
let harnesses: [(name: String, file: String, dependencies: [Target.Dependency])] = [
  ("request-line", "RequestLine", ["PrismProtocol"]),
  ("http-head", "HTTPHead", ["PrismLinux"]),
  ("packet", "Packet", ["PrismPacket", "PrismBase", "PrismProtocol"]),
  ("columns", "Columns", ["PrismPacket", "PrismProtocol"]),
  ("remote-envelope", "RemoteEnvelope", ["PrismPacket", "PrismConfig"]),
  ("yaml", "YAML", ["PrismConfig"]),
  ("otlp", "OTLP", ["PrismInputs", "PrismProtocol"]),
  ("msgpack", "MsgPack", ["PrismInputs", "PrismAdmission", "PrismPacket", "PrismProtocol"]),
  ("statsd", "Statsd", ["PrismInputs", "PrismProtocol"]),
  ("syslog", "Syslog", ["PrismInputs", "PrismProtocol"]),
  ("crash-spool", "CrashSpool", ["PrismLinux", "PrismAdmission", "PrismProtocol"]),
  ("salvage", "Salvage", ["PrismStore", "PrismRecovery", "PrismSQLite"]),
]
if Context.environment["PRISM_FUZZ"] != nil {
  package.targets += [
    .target(name: "CFuzz", path: "Tests/Fuzz/CFuzz"),
    .target(
      name: "FuzzSupport", dependencies: ["CFuzz"], path: "Tests/Fuzz/Support",
      swiftSettings: strict),
  ]
  for harness in harnesses {
    let others = harnesses.filter { $0.name != harness.name }.map { "\($0.file).swift" }
    package.targets.append(
      .executableTarget(
        name: "fuzz-\(harness.name)", dependencies: ["FuzzSupport"] + harness.dependencies, path: "Tests/Fuzz",
        exclude: ["CFuzz", "Corpora", "Support", "seed-salvage", "FuzzTests.swift"] + others,
        sources: ["\(harness.file).swift"], swiftSettings: strict + [.define("FUZZ")]))
    package.products.append(.executable(name: "fuzz-\(harness.name)", targets: ["fuzz-\(harness.name)"]))
  }
} else {
  // The same harnesses, over their corpora.
  package.targets.append(
    .testTarget(
      name: "FuzzTests",
      dependencies: [
        "PrismAdmission", "PrismBase", "PrismConfig", "PrismInputs", "PrismLinux", "PrismPacket", "PrismProtocol",
        "PrismSQLite", "PrismRecovery", "PrismStore", "PrismTestSupport",
      ], path: "Tests/Fuzz", exclude: ["CFuzz", "Corpora", "Support/Fuzz.swift", "seed-salvage"], swiftSettings: strict)
  )
}

// The suites that `make test-arm64` builds: all of them would take hours under an emulator.
if let suites = Context.environment["PRISM_SUITES"]?.split(separator: " ").map(String.init) {
  package.targets.removeAll { $0.type == .test && !suites.contains($0.name) }
}

import PrismConfig
import PrismProtocol
import Testing

@Suite("The environment in strings")
struct EnvironmentTests {
  static let environment = [
    "REGION": "eu", "EMPTY": "", "YAML": "a: [b", "ITEMS": "50", "OFF": "false", "DEEP": "${REGION}",
  ]

  @Test(
    "is put in after parsing",
    arguments: [
      ("${REGION}", "eu"), ("x-${REGION}-${ITEMS}", "x-eu-50"), ("${NONE:-other}", "other"),
      ("${EMPTY:-other}", "other"),
      ("${NONE:-}x", "x"), ("$$", "$"), ("$${REGION}", "${REGION}"), ("a$b", "a$b"), ("${YAML}", "a: [b"),
      ("${DEEP}", "${REGION}"), ("100$", "100$"),
    ])
  func substitution(text: String, expected: String) throws {
    let folder = try ConfigurationFolder(["prismd.yaml": "common: {v: '\(text)'}\n"])
    #expect(try folder.load(Self.environment).snapshot.daemon.common["v"] == expected)
  }

  @Test("gives numbers and switches too, but no structure")
  func scalars() throws {
    let folder = try ConfigurationFolder([
      "prismd.yaml": "", "namespaces.d/prism.yaml": "maxItem: ${ITEMS}\nisUpload: \"${OFF}\"\n",
    ])
    let prism = try #require(try folder.load(Self.environment).snapshot.namespaces[.prism])
    #expect(prism.maxItem == 50 && !prism.isUpload)
    try folder.write("namespaces.d/prism.yaml", "tls: ${YAML}\n")
    #expect(
      folder.faultLines(Self.environment) == ["namespaces.d/prism.yaml:1: tls: is ${YAML}, must be a map of keys"])
  }

  @Test("never shows in a fault")
  func secrecy() throws {
    let folder = try ConfigurationFolder(["prismd.yaml": "durability: ${PASSWORD}\nremote: {url: \"${PASSWORD}\"}\n"])
    let lines = folder.faultLines(["PASSWORD": "hunter2"])
    #expect(lines.count == 2)
    #expect(!lines.joined().contains("hunter2"))
  }
}

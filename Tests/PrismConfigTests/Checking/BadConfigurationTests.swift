import PrismConfig
import Testing

@Suite("Bad configurations")
struct BadConfigurationTests {
  static let environment = ["MANY": "5000"]

  static func folder() throws -> ConfigurationFolder {
    let folder = try ConfigurationFolder([
      "prismd.yaml": "keys: [{id: k1, file: k1.key}]\n", "k1.key": "00112233445566778899aabbccddeeff",
      "cert.pem": FilesTests.certificate,
      "bad.key": "not hexadecimal, but secret", "key.pem": FilesTests.privateKey,
    ])
    try folder.write("open.key", "00112233445566778899aabbccddeeff", mode: 0o604)
    return folder
  }

  @Test(
    "each fault is shown with its line, with what is allowed",
    arguments: BadConfiguration.daemon + BadConfiguration.namespace)
  func corpus(bad: BadConfiguration) throws {
    let folder = try Self.folder()
    try folder.write(bad.file, bad.text)
    #expect(folder.faultLines(Self.environment) == bad.lines)
  }
}

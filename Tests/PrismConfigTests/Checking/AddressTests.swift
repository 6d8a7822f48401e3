import PrismConfig
import PrismProtocol
import Testing

@Suite("Addresses")
struct AddressTests {
  @Test(
    "a collector's address is taken without its trailing slash",
    arguments: [
      ("https://collector.example.com", "https://collector.example.com"),
      ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
      ("https://[::1]:8443/a/b//", "https://[::1]:8443/a/b"), ("HTTPS://Host/x", "HTTPS://Host/x"),
      ("https://under_score.local", "https://under_score.local"),
    ])
  func collector(url: String, expected: String) throws {
    let folder = try ConfigurationFolder([
      "prismd.yaml": "keys: [{id: k, file: k}]", "k": FilesTests.key, "namespaces.d/prism.yaml": "url: \"\(url)\"\n",
    ])
    #expect(try folder.load().snapshot.namespaces[.prism]?.url == expected)
  }

  @Test(
    "a text that is no address",
    arguments: [
      "collector.example.com", "http:/h", "http://", "http://:80", "http://h:0", "http://h:65536", "http://h:x",
      "http://h:",
      "http://[::1", "http://[1.2.3.4]", "http://::1", "http://h h", "http://h/\\u00e4", "http://u@h", "http://h#f",
      "http://h?q",
    ])
  func noCollector(url: String) throws {
    let folder = try ConfigurationFolder(["prismd.yaml": "", "namespaces.d/prism.yaml": "url: \"\(url)\"\n"])
    #expect(folder.faultLines().count == 1)
  }

  @Test(
    "remote configuration comes encrypted, or from this machine",
    arguments: [
      ("https://h", true), ("http://localhost:1", true), ("http://127.9.9.9", true), ("http://[::1]", true),
      ("http://h", false), ("http://128.0.0.1", false), ("http://127.0.0.1.example.com", false),
      ("ftp://localhost", false),
    ])
  func remote(url: String, isSound: Bool) throws {
    let folder = try ConfigurationFolder(["prismd.yaml": "remote: {url: \"\(url)\"}\n"])
    #expect(folder.faultLines().isEmpty == isSound)
  }

  @Test(
    "metrics are served on loopback unless configured otherwise",
    arguments: [
      ("9464", "127.0.0.1:9464"), (":9464", "127.0.0.1:9464"), ("localhost:9464", "127.0.0.1:9464"),
      ("0.0.0.0:80", "0.0.0.0:80"), ("[::]:80", "[::]:80"),
    ])
  func listener(text: String, expected: String) throws {
    let folder = try ConfigurationFolder(["prismd.yaml": "metrics: {listen: \"\(text)\"}\n"])
    #expect(try folder.load().snapshot.daemon.metricsListen == expected)
  }

  @Test(
    "a text that is no listener", arguments: ["", "0", "65536", "host:80", "::1:80", "1.2.3:80", "1.2.3.4", "[::1]"])
  func noListener(text: String) throws {
    let folder = try ConfigurationFolder(["prismd.yaml": "metrics: {listen: \"\(text)\"}\n"])
    #expect(folder.faultLines().count == 1)
  }
}

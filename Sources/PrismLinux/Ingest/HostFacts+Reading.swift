import Glibc
public import PrismAdmission
import PrismBase

extension HostFacts {
  /// Reads the facts of the machine: DMI or the device tree, os-release, the kernel's release.
  /// - Parameter root: where the system's files are; another folder in tests.
  public static func read(deviceID: String, root: String = "") -> HostFacts {
    let (brand, model) = hardware(root)
    return HostFacts(
      deviceID: deviceID, brand: brand, model: model, systemVersion: systemVersion(root), bootID: KernelBoot.id)
  }

  private static func hardware(_ root: String) -> (brand: String?, model: String?) {
    let dmi = root + "/sys/class/dmi/id/"
    if let model = fact(dmi + "product_name") { return (fact(dmi + "sys_vendor"), model) }
    let tree = root + "/proc/device-tree/"
    // `compatible` is "vendor,board", zero-terminated, the most specific first (Devicetree Specification, 2.3.1).
    let vendor = fact(tree + "compatible")?.split(separator: ",").first.map { String($0) }
    return (vendor, fact(tree + "model"))
  }

  private static func fact(_ path: String) -> String? {
    guard let text = SmallFile.text(path, bytesMax: 256) else { return nil }
    let fact = String(text.prefix { $0 != "\0" }).trimmed
    return fact.isEmpty ? nil : fact
  }

  /// "Debian GNU/Linux 12 (bookworm), Linux 6.1.0-18-amd64"
  private static func systemVersion(_ root: String) -> String {
    let files = [root + "/etc/os-release", root + "/usr/lib/os-release"]  // in this order: os-release(5)
    let name = files.lazy.compactMap { SmallFile.text($0, bytesMax: 16_384) }.first.flatMap(prettyName)
    return [name, kernel()].compactMap { $0 }.joined(separator: ", ")
  }

  private static func prettyName(_ osRelease: String) -> String? {
    for line in osRelease.split(separator: "\n") where line.hasPrefix("PRETTY_NAME=") {
      return String(line.dropFirst("PRETTY_NAME=".count).filter { $0 != "\"" && $0 != "'" }).trimmed
    }
    return nil
  }

  private static func kernel() -> String {
    var name = utsname()
    guard uname(&name) == 0 else { return "Linux" }
    return withUnsafeBytes(of: name.release) { "Linux " + String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
  }
}

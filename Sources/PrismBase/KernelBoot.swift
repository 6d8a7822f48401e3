/// The boot of this machine.
public enum KernelBoot {
  /// The kernel's id of it, 32 hexadecimal digits; nil without `/proc` (random(4)).
  public static let id: String? = {
    let text = SmallFile.text("/proc/sys/kernel/random/boot_id", bytesMax: 64)?.filter { $0.isHexDigit }
    return text?.isEmpty == false ? text : nil
  }()
}

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <stdint.h>

/// What programs here need of the tables of the UEFI specification. Members that they do not use
/// keep their place as pointers.
namespace efi {

using status = uint64_t;
using handle = void*;
inline constexpr status success = 0;
inline constexpr status aborted = uint64_t{1} << 63 | 21;

struct guid {
    uint32_t first;
    uint16_t second;
    uint16_t third;
    uint8_t last[8];
};

struct table_header {
    uint64_t signature;
    uint32_t revision;
    uint32_t header_size;
    uint32_t crc32;
    uint32_t reserved;
};
struct simple_text_output {
    void* reset;
    status (*output_string)(simple_text_output* self, char16_t const* words);
};
enum class allocate_type : uint32_t { any_pages, max_address, address };
enum class memory_type : uint32_t { reserved, loader_code, loader_data };

struct boot_services {
    table_header header;
    void* raise_tpl;
    void* restore_tpl;
    status (*allocate_pages)(allocate_type how, memory_type what, uint64_t pages,
                             uint64_t* address);
    void* free_pages_to_uninstall_protocol_interface[13];
    status (*handle_protocol)(handle of, guid const* protocol, void** interface);
    void* reserved_to_get_next_monotonic_count[11];
    void* stall;
    status (*set_watchdog_timer)(uint64_t seconds, uint64_t code, uint64_t bytes,
                                 char16_t const* data);
};
struct system_table {
    table_header header;
    char16_t const* firmware_vendor;
    uint32_t firmware_revision;
    handle console_in_handle;
    void* con_in;
    handle console_out_handle;
    simple_text_output* con_out;
    handle standard_error_handle;
    void* std_err;
    void* runtime_services;
    boot_services* boot;
};

inline constexpr guid loaded_image_protocol{
    0x5B1B'31A1, 0x9562, 0x11D2, {0x8E, 0x3F, 0x00, 0xA0, 0xC9, 0x69, 0x72, 0x3B}};
struct loaded_image {
    uint32_t revision;
    handle parent;
    system_table* system;
    handle device;
    void* file_path;
    void* reserved;
    uint32_t options_bytes;
    char16_t const* options;
};

struct file {
    uint64_t revision;
    status (*open)(file* self, file** opened, char16_t const* name, uint64_t mode,
                   uint64_t attributes);
    status (*close)(file* self);
    status (*remove)(file* self);
    status (*read)(file* self, uint64_t* bytes, void* buffer);
    status (*write)(file* self, uint64_t* bytes, void const* buffer);
    void* get_position_to_set_info[4];
    status (*flush)(file* self);

    static constexpr uint64_t to_read = 1;
    static constexpr uint64_t to_write = 2;
    static constexpr uint64_t to_create = uint64_t{1} << 63;
};
inline constexpr guid simple_file_system_protocol{
    0x964E'5B22, 0x6459, 0x11D2, {0x8E, 0x39, 0x00, 0xA0, 0xC9, 0x69, 0x72, 0x3B}};
struct simple_file_system {
    uint64_t revision;
    status (*open_volume)(simple_file_system* self, file** root);
};

}  // namespace efi
